// A host whose etcd has no space left: writes are refused with the reason, and what was acknowledged stays readable and
// can be deleted.
import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { createClient, httpTransport, loadKubeconfig } from '#client/index.ts'
import { records, storageCrds } from '#crds/index.ts'
import type { ObjectKey, StoredObject } from '#store/index.ts'
import { isStoreError } from '#store/index.ts'
import { openHostStore } from '#store/host/index.ts'
import { startCluster, waitFor } from '#test/support/index.ts'
import { freshCluster, valueOf } from './store.ts'

const { signal } = new AbortController()
const crds = { group: 'apiextensions.k8s.io', version: 'v1', resource: 'customresourcedefinitions' }
const quotaMiB = 32

describe('objects as Records in a host that is full', function () {
  this.timeout(120_000)

  it('are refused as such, and nothing that was acknowledged is lost', async () => {
    await using host = new AsyncDisposableStack()
    const flags = { etcd: [`--quota-backend-bytes=${quotaMiB * 1024 * 1024}`] }
    const cluster = await startCluster({ name: 'full', flags })
    host.defer(() => cluster.stop())
    const transport = host.use(httpTransport(await loadKubeconfig({ file: cluster.kubeconfig }, { trusted: true })))
    const client = createClient(transport)
    for (const crd of storageCrds()) await client.create(crds, crd, { signal })
    const served = (): Promise<boolean> =>
      client.list(records, { signal }).then(
        () => true,
        () => false,
      )
    await waitFor(served, { what: 'Records to be served', deadlineMs: 30_000 })
    await using store = await openHostStore({ client, sealKey: randomBytes(32), signal })
    const of = freshCluster()
    const key = (n: number): ObjectKey => ({ cluster: of, resource: 'configmaps', namespace: 'shop', name: `n${n}` })
    const large = Buffer.from(JSON.stringify({ text: randomBytes(400_000).toString('hex') }))

    const made: StoredObject[] = []
    let refusal: unknown
    while (refusal === undefined && made.length < 2 * quotaMiB)
      await store.create(key(made.length), large, { signal }).then(
        (object) => made.push(object),
        (error: unknown) => (refusal = error),
      )
    expect(isStoreError(refusal, 'Full'), String(refusal)).to.equal(true)
    expect(String(refusal)).to.contain('the host takes no more objects')

    const { items } = await store.list({ cluster: of }, { signal })
    // When a write makes etcd notice that its space is used up, etcd applies this write, but refuses it in the answer:
    // so this one object may exist.
    const acknowledged = new Set(made.map(({ revision }) => revision))
    const others = items.filter(({ revision }) => !acknowledged.has(revision)).map((object) => object.key.name)
    expect(items.length - others.length).to.equal(made.length)
    expect([[], [key(made.length).name]]).to.deep.include(others)
    const [first] = made
    const changing = await store
      .update(first!.key, valueOf('n0'), { signal, ifRevision: first!.revision })
      .catch((error: unknown) => error)
    expect(isStoreError(changing, 'Full'), String(changing)).to.equal(true)
    await store.delete(first!.key, { signal, ifRevision: first!.revision })
    expect(await store.get(first!.key, { signal })).to.equal(undefined)
  })
})
