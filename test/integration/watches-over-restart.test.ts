// A watch through a replica of `kcp apiserver` goes on where it was after the last replica was stopped and one is
// started again, also when it had not run for long: by `helm uninstall` and `helm install`, for example.
import { expect } from 'chai'
import type { KubeList } from '#apimachinery/meta/index.ts'
import { kubectl, waitFor } from '#test/support/index.ts'
import { startReplicas, type ReplicaSet, type RunningReplica } from './replicas.ts'

describe('a watch of a logical cluster', function () {
  this.timeout(120_000)
  let set: ReplicaSet
  let replica: RunningReplica
  let tenant: string
  before(async () => {
    set = await startReplicas(1)
    const [first] = set.replicas
    if (first === undefined) throw new Error('there is no replica')
    replica = first
    await set.create('acme')
    tenant = await set.kubeconfig('acme', replica)
  })
  after(() => set[Symbol.asyncDispose]())

  it('goes on after the only replica was stopped and started again, with changes and deletions', async () => {
    const as = async (...args: string[]): Promise<string> => (await kubectl(tenant, args)).stdout
    const isSaved = async (): Promise<boolean> =>
      (await set.host.kubectl(['get', 'records.storage.kcp.dev', '-A'])).stdout.includes(' deletions ')
    await waitFor(isSaved, { what: 'what it knows of deletions to be saved', deadlineMs: 60_000 })
    for (const name of ['kept', 'gone']) await as('create', 'configmap', name)
    const list = JSON.parse(await as('get', '--raw', '/api/v1/namespaces/default/configmaps')) as KubeList
    await as('delete', 'configmap', 'gone')
    await as('label', 'configmap', 'kept', 'changed=yes')
    await replica.process.stop()
    await replica.process.start()
    const isServed = async (): Promise<boolean> =>
      (await kubectl(tenant, ['get', 'configmap', 'kept'], { expectCode: 'any' })).code === 0
    await waitFor(isServed, { what: 'the logical cluster', deadlineMs: 60_000 })
    const path = `/api/v1/namespaces/default/configmaps?watch=1&resourceVersion=${list.metadata.resourceVersion}&timeoutSeconds=3`
    const events = (await as('get', '--raw', path))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { type: string; object: { metadata: { name?: string } } })
    expect(events.map(({ type, object }) => `${type} ${object.metadata.name}`)).to.have.members([
      'DELETED gone',
      'MODIFIED kept',
    ])
  })
})
