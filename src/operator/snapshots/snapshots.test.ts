import { expect } from 'chai'
import { setTimeout as delay } from 'node:timers/promises'
import type { GroupVersionResource, KubeObject } from '#apimachinery/meta/index.ts'
import {
  areVolumesEnding,
  restoredFromAnnotation,
  snapshotFinalizer,
  volumeSourceAnnotation,
  type LogicalClusterSnapshot,
  type SnapshotVolume,
} from '#crds/index.ts'
import type { OperatorContext } from '#operator/framework/operator-context.ts'
import { snapshotsController, type SnapshotVolumes } from './snapshots.ts'

describe('LogicalClusterSnapshots with volumes', () => {
  const volume: SnapshotVolume = {
    ...{ namespace: 'shop', claim: 'data', claimUid: 'u-data', state: 'Included', member: 'east', name: 'kcp-1' },
  }
  const snapshot = (name: string, { metadata = {}, status = {} }: { metadata?: object; status?: object } = {}) =>
    ({
      ...{ apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalClusterSnapshot' },
      metadata: { name, uid: `u-${name}`, generation: 1, finalizers: [snapshotFinalizer], ...metadata },
      ...{ spec: { logicalCluster: 'acme', store: 'main', volumes: 'Include' }, status },
    }) as LogicalClusterSnapshot
  const objectOf = (name: string, annotations: Record<string, string> = {}): KubeObject => ({
    ...{ apiVersion: 'v1', kind: 'Any', metadata: { name, uid: `u-${name}`, annotations }, spec: {} },
  })

  interface Story {
    readonly snapshots: readonly LogicalClusterSnapshot[]
    readonly taker: Partial<SnapshotVolumes>
    readonly cluster?: Record<string, string>
    readonly claims?: readonly KubeObject[]
    /** Called at each look at the object of a snapshot. */
    readonly onLook?: (name: string) => void
    readonly onEnd?: () => void
    readonly until: (host: ReadonlyMap<string, LogicalClusterSnapshot>) => boolean
  }
  /** Runs the controller until `until` holds. Resolves with the snapshots. */
  const run = async ({ snapshots, taker, cluster = {}, claims = [], onLook, onEnd, until }: Story) => {
    const host = new Map(snapshots.map((one) => [one.metadata.name, one]))
    const others: Record<string, KubeObject> = {
      logicalclusters: objectOf('acme', cluster),
      snapshotstores: objectOf('main'),
    }
    const context = {
      log: { warn: () => undefined, info: () => undefined, debug: () => undefined, error: () => undefined },
      informers: {
        of: ({ resource }: GroupVersionResource) => ({
          synced: () => Promise.resolve(),
          onChange: (listener: (change: object) => void) => {
            if (resource === 'logicalclustersnapshots')
              for (const [key, after] of host) listener({ key, before: undefined, after })
            return () => undefined
          },
          store: {
            get: (name: string) => {
              const other = others[resource]
              return other?.metadata.name === name ? other : host.get(name)
            },
            list: () => (others[resource] === undefined ? [...host.values()] : [others[resource]]),
          },
        }),
      },
      clusters: {
        tryGet: (_: GroupVersionResource, { name }: { name: string }) => {
          onLook?.(name)
          return Promise.resolve(host.get(name))
        },
        patch: (_: object, { name }: { name: string }, _type: string, patch: Partial<LogicalClusterSnapshot>) => {
          const was = host.get(name) as LogicalClusterSnapshot
          const metadata = { ...was.metadata, ...patch.metadata }
          const status = { ...was.status, ...patch.status }
          host.set(name, { ...was, metadata, status })
          return Promise.resolve(host.get(name))
        },
        create: () => Promise.resolve(undefined),
      },
      virtual: () => ({ list: () => Promise.resolve({ items: claims }) }),
    } as unknown as OperatorContext
    const end = new AbortController()
    const running = snapshotsController({ volumes: taker as SnapshotVolumes })
      .run(context, { signal: end.signal, started: () => undefined })
      .catch(() => undefined)
    while (!until(host)) await delay(5)
    end.abort()
    onEnd?.()
    await running
    return host
  }
  const complete = (one: LogicalClusterSnapshot | undefined) =>
    one?.status?.conditions?.find(({ type }) => type === 'Complete')

  it('of one logical cluster do not use up the attempts of each other', async () => {
    let isOtherBusy = false
    let looks = 0
    const { promise: released, resolve: release } = Promise.withResolvers<undefined>()
    const host = await run({
      snapshots: [snapshot('a'), snapshot('b')],
      taker: {
        plan: async ({ metadata: { name } }) => {
          if (name === 'a') return [{ ...volume, state: 'Pending' }]
          isOtherBusy = true
          await released
          throw new Error('ended')
        },
        take: (_, volumes) => Promise.resolve([...volumes]),
      },
      onLook: (name) => {
        if (isOtherBusy && name === 'a') looks++
      },
      until: () => looks > 0,
      onEnd: () => release(undefined),
    })
    expect(host.get('a')?.status).to.include({ phase: 'InProgress', attempts: 1 })
    expect(complete(host.get('a'))?.reason).to.equal('TakingVolumes')
  })

  const ending = snapshot('a', {
    metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' },
    status: { phase: 'Completed', attempts: 1, volumes: [volume] },
  })
  const deleted = (host: ReadonlyMap<string, LogicalClusterSnapshot>) =>
    host.get('a')?.status?.conditions?.find(({ type }) => type === 'Deleted')

  for (const { title, story, message } of [
    {
      title: 'it is restored',
      story: { cluster: { [restoredFromAnnotation]: 'a/u-a' } },
      message: /^"acme" is restored/,
    },
    {
      title: 'claims wait for its volumes',
      story: {
        claims: [objectOf('c', { [volumeSourceAnnotation]: '{"snapshot":"a","uid":"u-a","claimUid":"u-data"}' })],
      },
      message: /^1 claims get their volumes/,
    },
  ])
    it(`are not deleted while ${title}, and say nothing against it`, async () => {
      const host = await run({ ...story, snapshots: [ending], taker: {}, until: (now) => deleted(now) !== undefined })
      expect(deleted(host)).to.include({ reason: 'InUse' })
      expect(deleted(host)?.message).to.match(message)
      expect(areVolumesEnding(host.get('a') as LogicalClusterSnapshot)).to.equal(false)
    })

  it('say that their volumes end before members delete them', async () => {
    const said: boolean[] = []
    await run({
      snapshots: [ending],
      cluster: { [restoredFromAnnotation]: 'a/u-before' },
      taker: {
        delete: (one) => {
          said.push(areVolumesEnding(one))
          return Promise.resolve({ reason: 'DeletingVolumes', message: 'they go' })
        },
      },
      until: (host) => deleted(host) !== undefined,
    })
    expect(said).to.deep.equal([true])
  })
})
