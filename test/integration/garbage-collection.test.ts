// Garbage collection with each mode of kubectl's --cascade, in two logical clusters whose objects have the same names.
import { expect } from 'chai'
import { syncerFinalizer } from '#crds/index.ts'
import { at } from './json.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'
import { waitFor } from '#test/support/index.ts'

interface Meta {
  name: string
  uid: string
  namespace?: string
  finalizers?: string[]
  deletionTimestamp?: string
  ownerReferences?: { uid: string }[]
}
interface OwnerOptions {
  /** Default true. */
  block?: boolean
  namespace?: string
  finalizers?: string[]
  kind?: 'ConfigMap' | 'Widget'
  owners?: object[]
}

describe('garbage collection', () => {
  let kcp: KcpInstance
  let acme: Tenant
  let bob: Tenant
  let namespace = ''
  let count = 0

  before(async () => {
    kcp = await startInstance()
    acme = await kcp.tenant('acme')
    bob = await kcp.tenant('bob')
    for (const { kubectl } of [acme, bob]) {
      await kubectl(['apply', '-f', '-'], { input: widgets })
      await kubectl(['wait', '--for=condition=Established', 'crd/widgets.example.dev', '--timeout=20s'])
    }
  })
  after(() => kcp[Symbol.asyncDispose]())
  beforeEach(async () => {
    namespace = `case-${++count}`
    for (const tenant of [acme, bob]) await make(tenant, 'api/v1/namespaces', 'Namespace', 'v1', { name: namespace })
  })

  async function make(
    { http, base }: Tenant,
    path: string,
    kind: string,
    apiVersion: string,
    metadata: object,
  ): Promise<Meta> {
    const response = await http.request('POST', `${base}/${path}`, { body: { kind, apiVersion, metadata } })
    expect(response.status, response.text).to.equal(201)
    return response.json()['metadata'] as Meta
  }
  const pathOf = (kind: 'ConfigMap' | 'Widget', space = namespace): string =>
    kind === 'ConfigMap' ? `api/v1/namespaces/${space}/configmaps` : `apis/example.dev/v1/namespaces/${space}/widgets`
  /** Creates an object with owners. */
  const create = (tenant: Tenant, name: string, options: OwnerOptions = {}): Promise<Meta> => {
    const { kind = 'ConfigMap', owners, finalizers, namespace: space } = options
    const metadata = { name, ownerReferences: owners, finalizers }
    return make(tenant, pathOf(kind, space), kind, kind === 'ConfigMap' ? 'v1' : 'example.dev/v1', metadata)
  }
  const ownedBy = (
    { name, uid }: { name: string; uid: string },
    { block = true, kind = 'ConfigMap' }: OwnerOptions = {},
  ) => ({
    apiVersion: kind === 'ConfigMap' ? 'v1' : 'example.dev/v1',
    kind,
    name,
    uid,
    blockOwnerDeletion: block,
  })
  const read = async ({ http, base }: Tenant, name: string, options: OwnerOptions = {}): Promise<Meta | undefined> => {
    const response = await http.request(
      'GET',
      `${base}/${pathOf(options.kind ?? 'ConfigMap', options.namespace)}/${name}`,
    )
    return response.status === 404 ? undefined : (response.json()['metadata'] as Meta)
  }
  const until = (what: string, condition: () => Promise<boolean>): Promise<unknown> =>
    waitFor(condition, { what, deadlineMs: 10_000 })
  const untilGone = (tenant: Tenant, name: string, options?: OwnerOptions): Promise<unknown> =>
    until(`${name} to go`, async () => (await read(tenant, name, options)) === undefined)
  const remove = (tenant: Tenant, name: string, cascade: string): Promise<unknown> =>
    tenant.kubectl(['-n', namespace, 'delete', 'configmap', name, `--cascade=${cascade}`, '--wait=false'])

  it('background: deletes dependents of all generations after their owner, and nothing in another logical cluster', async () => {
    for (const tenant of [acme, bob]) {
      const parent = await create(tenant, 'parent')
      const child = await create(tenant, 'child', { owners: [ownedBy(parent)] })
      const widget = await create(tenant, 'grandchild', { kind: 'Widget', owners: [ownedBy(child)] })
      await create(tenant, 'great-grandchild', { owners: [ownedBy(widget, { kind: 'Widget' })] })
    }
    await remove(acme, 'parent', 'background')
    for (const name of ['parent', 'child', 'great-grandchild']) await untilGone(acme, name)
    await untilGone(acme, 'grandchild', { kind: 'Widget' })
    for (const name of ['parent', 'child', 'great-grandchild'])
      expect(await read(bob, name), `${name} of the other`).to.not.equal(undefined)
    expect(await read(bob, 'grandchild', { kind: 'Widget' })).to.not.equal(undefined)
  })

  it('foreground: keeps the owner until its blocking dependents are gone', async () => {
    const parent = await create(acme, 'parent')
    await create(acme, 'child', { owners: [ownedBy(parent)], finalizers: ['example.dev/hold'] })
    await create(acme, 'light', { owners: [ownedBy(parent, { block: false })], finalizers: ['example.dev/hold'] })
    await remove(acme, 'parent', 'foreground')
    for (const name of ['child', 'light'])
      await until(`${name} to be marked`, async () => (await read(acme, name))?.deletionTimestamp !== undefined)
    expect((await read(acme, 'parent'))?.finalizers).to.deep.equal(['foregroundDeletion'])
    const release = ['--type=merge', '-p', '{"metadata":{"finalizers":null}}']
    await acme.kubectl(['-n', namespace, 'patch', 'configmap', 'child', ...release])
    await untilGone(acme, 'parent')
    expect(await read(acme, 'light'), 'the owner does not wait for a dependent that does not block').to.not.equal(
      undefined,
    )
    await acme.kubectl(['-n', namespace, 'patch', 'configmap', 'light', ...release])
  })

  it('foreground: deletes the youngest generation first', async () => {
    const parent = await create(acme, 'parent')
    const child = await create(acme, 'child', { owners: [ownedBy(parent)] })
    await create(acme, 'grandchild', { owners: [ownedBy(child)], finalizers: ['example.dev/hold'] })
    await remove(acme, 'parent', 'foreground')
    await until(
      'the grandchild to be marked',
      async () => (await read(acme, 'grandchild'))?.deletionTimestamp !== undefined,
    )
    expect((await read(acme, 'child'))?.finalizers).to.deep.equal(['foregroundDeletion'])
    expect((await read(acme, 'parent'))?.finalizers).to.deep.equal(['foregroundDeletion'])
    await acme.kubectl([
      '-n',
      namespace,
      'patch',
      'configmap',
      'grandchild',
      '--type=merge',
      '-p',
      '{"metadata":{"finalizers":null}}',
    ])
    for (const name of ['grandchild', 'child', 'parent']) await untilGone(acme, name)
  })

  it('orphan: keeps the dependents and removes the owner reference', async () => {
    const parent = await create(acme, 'parent')
    const other = await create(acme, 'other')
    await create(acme, 'child', { owners: [ownedBy(parent)] })
    await create(acme, 'shared', { owners: [ownedBy(parent), ownedBy(other)] })
    await remove(acme, 'parent', 'orphan')
    await untilGone(acme, 'parent')
    expect(await read(acme, 'child')).to.not.have.property('ownerReferences')
    expect((await read(acme, 'shared'))?.ownerReferences?.map(({ uid }) => uid)).to.deep.equal([other.uid])
  })

  it('orphan: keeps the finalizer that says so until the syncers of members have removed theirs', async () => {
    const parent = await create(acme, 'parent')
    await create(acme, 'child', { owners: [ownedBy(parent)] })
    const setFinalizers = async (finalizers: readonly string[]): Promise<void> => {
      const patch = { body: { metadata: { finalizers } }, headers: ['Content-Type', 'application/merge-patch+json'] }
      const response = await kcp.admin.http.request('PATCH', `${acme.base}/${pathOf('ConfigMap')}/parent`, patch)
      expect(response.status, response.text).to.equal(200)
    }
    await setFinalizers([syncerFinalizer('east')])
    await remove(acme, 'parent', 'orphan')
    await until('the reference to go', async () => (await read(acme, 'child'))?.ownerReferences === undefined)
    // A later deletion has ended: whatever that of the parent caused has happened.
    await create(acme, 'later')
    await remove(acme, 'later', 'orphan')
    await untilGone(acme, 'later')
    expect((await read(acme, 'parent'))?.finalizers).to.have.members([syncerFinalizer('east'), 'orphan'])
    await setFinalizers(['orphan'])
    await untilGone(acme, 'parent')
    expect(await read(acme, 'child')).to.not.have.property('ownerReferences')
  })

  it('keeps an object that has another owner', async () => {
    const [first, second] = [await create(acme, 'first'), await create(acme, 'second')]
    await create(acme, 'child', { owners: [ownedBy(first), ownedBy(second)] })
    await remove(acme, 'first', 'background')
    await until('the reference to go', async () => (await read(acme, 'child'))?.ownerReferences?.length === 1)
    await remove(acme, 'second', 'background')
    await untilGone(acme, 'child')
  })

  it('deletes an object whose only owner never existed or has another uid', async () => {
    const real = await create(acme, 'real')
    await create(acme, 'lost', { owners: [ownedBy({ name: 'never', uid: 'no-such-uid' })] })
    await create(acme, 'mistaken', { owners: [ownedBy({ name: real.name, uid: 'another-uid' })] })
    await create(acme, 'right', { owners: [ownedBy(real)] })
    await untilGone(acme, 'lost')
    await untilGone(acme, 'mistaken')
    expect(await read(acme, 'right')).to.not.equal(undefined)
  })

  it('deletes an object whose only owner is in another logical cluster', async () => {
    const foreign = await create(bob, 'parent')
    await create(acme, 'child', { owners: [ownedBy(foreign)] })
    await untilGone(acme, 'child')
    expect(await read(bob, 'parent')).to.not.equal(undefined)
  })

  it('keeps the dependents of an owner whose kind is not served', async () => {
    const unknown = { apiVersion: 'unknown.dev/v1', kind: 'Thing', name: 'x', uid: 'u', blockOwnerDeletion: false }
    await create(acme, 'child', { owners: [unknown] })
    const parent = await create(acme, 'parent')
    await create(acme, 'sign', { owners: [ownedBy(parent)] })
    await remove(acme, 'parent', 'background')
    await untilGone(acme, 'sign')
    expect(await read(acme, 'child')).to.not.equal(undefined)
  })

  it('deletes an object whose only owner is in another namespace, and reports it with an Event', async () => {
    const parent = await create(acme, 'parent', { namespace: 'default' })
    const child = await create(acme, 'child', { owners: [ownedBy(parent)] })
    await untilGone(acme, 'child')
    const events = await acme.http.request('GET', `${acme.base}/api/v1/namespaces/${namespace}/events`)
    const { items } = events.json() as unknown as { items: object[] }
    const told = items.find((event) => at(event, 'involvedObject.uid') === child.uid)
    expect(at(told, 'reason')).to.equal('OwnerRefInvalidNamespace')
    expect(await read(acme, 'parent', { namespace: 'default' })).to.not.equal(undefined)
    await acme.kubectl(['delete', 'configmap', 'parent'])
  })

  for (const cascade of ['background', 'foreground'])
    it(`${cascade}: deletes a cycle of owners completely`, async () => {
      const first = await create(acme, 'first')
      const second = await create(acme, 'second', { owners: [ownedBy(first)] })
      const ownerReferences = [ownedBy(second)]
      await acme.kubectl([
        '-n',
        namespace,
        'patch',
        'configmap',
        'first',
        '--type=merge',
        '-p',
        JSON.stringify({ metadata: { ownerReferences } }),
      ])
      await remove(acme, 'first', cascade)
      await untilGone(acme, 'first')
      await untilGone(acme, 'second')
    })

  it('after a crash, deletes the dependents of an owner that was deleted just before it', async () => {
    const parent = await create(acme, 'parent')
    await create(acme, 'child', { owners: [ownedBy(parent)] })
    // The owner is deleted just before the program is killed, so nothing handles its dependents.
    await acme.http.request('DELETE', `${acme.base}/${pathOf('ConfigMap')}/parent`)
    await kcp.process.kill()
    await kcp.process.start()
    await acme.kubectl(['-n', namespace, 'get', 'configmaps'])
    await untilGone(acme, 'child')
  })
})

const widgets = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.example.dev' },
  spec: {
    group: 'example.dev',
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget' },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
  },
}
