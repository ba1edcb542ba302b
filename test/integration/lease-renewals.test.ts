// Renewals of Leases through `kcp apiserver`, which keeps them in memory: how many writes the host sees, and what is
// left of them after kill -9 and after a handover.
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { createClient, httpTransport, loadKubeconfig, type KubeClient } from '#client/index.ts'
import { records, type StorageRecord } from '#crds/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { waitFor } from '#test/support/index.ts'
import { startReplicas, type ReplicaSet } from './replicas.ts'

const leases = { group: 'coordination.k8s.io', version: 'v1', resource: 'leases' } as const
const { signal } = new AbortController()
const deadlineMs = 60_000

interface Lease extends KubeObject {
  spec: { holderIdentity: string; leaseDurationSeconds: number; renewTime: string }
}

describe('renewals of Leases', function () {
  this.timeout(300_000)
  const stack = new AsyncDisposableStack()
  let set: ReplicaSet
  let host: KubeClient

  const clientOf = async (kubeconfig: string): Promise<KubeClient> =>
    createClient(stack.use(httpTransport(await loadKubeconfig({ file: kubeconfig }, { trusted: true }))))
  before(async () => {
    set = stack.use(await startReplicas(1))
    host = await clientOf(set.host.kubeconfig)
    await set.create('acme')
  })
  after(() => stack.disposeAsync())

  const tenant = async (): Promise<KubeClient> => clientOf(await set.kubeconfig('acme', set.replicas[0]!))
  const timeOf = (n: number): string => `2026-01-01T00:00:${String(n).padStart(2, '0')}.000000Z`
  const create = (client: KubeClient, name: string): Promise<Lease> =>
    client.create(
      leases,
      {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name, namespace: 'default' },
        spec: { holderIdentity: 'me', leaseDurationSeconds: 15, renewTime: timeOf(0) },
      },
      { signal },
    )
  const renew = (client: KubeClient, lease: Lease, n: number): Promise<Lease> =>
    client.update(leases, { ...lease, spec: { ...lease.spec, renewTime: timeOf(n) } }, { signal })
  const revisionOf = ({ metadata }: KubeObject): number => Number(metadata.resourceVersion)
  const recordOf = async (name: string): Promise<StorageRecord> =>
    (await host.list<StorageRecord>(records, { signal })).items.find(
      (one) => one.name === name && one.resource.startsWith('leases.'),
    )!

  it('do not write its Record while they come, are lost after kill -9, and no resourceVersion comes again', async () => {
    const before = await tenant()
    let lease = await create(before, 'web')
    const { metadata } = await recordOf('web')
    const shown = [revisionOf(lease)]
    for (let n = 1; n <= 10; n++) {
      lease = await renew(before, lease, n)
      shown.push(revisionOf(lease))
      expect(
        (await before.get<Lease>(leases, { namespace: 'default', name: 'web' }, { signal })).spec.renewTime,
      ).to.equal(timeOf(n))
    }
    expect(new Set(shown).size).to.equal(11)
    expect((await recordOf('web')).metadata.resourceVersion).to.equal(metadata.resourceVersion)

    await set.replicas[0]!.process.kill()
    await set.replicas[0]!.process.start()
    const after = await tenant()
    const get = (): Promise<Lease> => after.get<Lease>(leases, { namespace: 'default', name: 'web' }, { signal })
    await waitFor(() => get().then(Boolean, () => false), { what: 'an answer after the restart', deadlineMs })
    const left = await get()
    expect(left.spec).to.deep.equal({ holderIdentity: 'me', leaseDurationSeconds: 15, renewTime: timeOf(0) })
    const conflict = await renew(after, lease, 11).catch((error: unknown) => error)
    expect(isStatusError(conflict, 'Conflict'), String(conflict)).to.equal(true)
    expect(revisionOf(await renew(after, left, 11))).to.be.greaterThan(Math.max(...shown))
  })

  it('and an Event that is repeated do not write its Record while it comes again and again', async () => {
    const client = await tenant()
    const events = { group: '', version: 'v1', resource: 'events' } as const
    const at = (n: number): string => `2026-01-01T00:00:${String(n).padStart(2, '0')}Z`
    const place = { namespace: 'default', name: 'web.1' }
    const involvedObject = { kind: 'Pod', namespace: 'default', name: 'web' }
    const first = { reason: 'BackOff', message: 'back-off', count: 1, firstTimestamp: at(0), lastTimestamp: at(0) }
    const created = await client.create<KubeObject>(
      events,
      { apiVersion: 'v1', kind: 'Event', metadata: place, involvedObject, ...first },
      { signal },
    )
    const recordOfEvent = async (): Promise<StorageRecord> =>
      (await host.list<StorageRecord>(records, { signal })).items.find(({ name }) => name === place.name)!
    await waitFor(async () => (await recordOfEvent()).metadata.resourceVersion === created.metadata.resourceVersion, {
      what: 'the Record of the Event',
      deadlineMs,
    })
    for (let n = 1; n <= 5; n++) {
      const patch = { count: n + 1, lastTimestamp: at(n) }
      await client.patch(events, place, 'merge', patch, { signal })
    }
    expect((await client.get<KubeObject>(events, place, { signal }))['count']).to.equal(6)
    expect((await recordOfEvent()).metadata.resourceVersion).to.equal(created.metadata.resourceVersion)
    const renamed = { count: 7, lastTimestamp: at(6), message: 'another' }
    await client.patch(events, place, 'merge', renamed, { signal })
    expect((await recordOfEvent()).data).to.contain('"count":7')
  })

  it('are in the host when the process has stopped', async () => {
    const before = await tenant()
    const lease = await renew(before, await create(before, 'handed-over'), 7)
    await set.replicas[0]!.process.stop()
    expect((await recordOf('handed-over')).data).to.contain(lease.spec.renewTime)
    await set.replicas[0]!.process.start()
  })
})
