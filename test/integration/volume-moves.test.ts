// Steps of VolumeMoves against a real API server with its volume controllers, which plays the logical cluster (namespace
// `shop`) and both members (namespaces `east`, `west`, `kcp-system`): what becomes of a move whose members are removed, and
// how many movers run beside applications.
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { statusError } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import {
  keptVolumeAnnotation,
  placedOnAnnotation,
  volumeAnnotation,
  volumeLockAnnotation,
  volumeMoveLabel,
  type PlacedOn,
  type VolumeMove,
  type VolumeMoveStatus,
} from '#crds/index.ts'
import { gvrs, Obstacle, type MemberSide, type VolumeParties } from '#operator/volumes/parties.ts'
import { advance, type MoveContext, type Outcome } from '#operator/volumes/phases.ts'
import { Places } from '#operator/volumes/places.ts'
import { Rounds } from '#operator/volumes/rounds.ts'
import { startCluster, waitFor } from '#test/support/index.ts'
import { clientOf } from './syncer/ordinary-upstream.ts'

const { signal } = new AbortController()
const deployments = { group: 'apps', version: 'v1', resource: 'deployments' } as const
const digest = 'abc'
const longAgo = '2026-01-01T00:00:00Z'
const lastRound = { completionTime: longAgo, seconds: 1, changedBytes: 0 }

describe('a move of a volume', function () {
  this.timeout(60_000)
  const stack = new AsyncDisposableStack()
  let client: KubeClient
  let rounds: Rounds

  before(async function () {
    this.timeout(120_000)
    const controllers = 'persistentvolume-binder-controller,persistentvolumeclaim-protection-controller'
    const flags = {
      'kube-apiserver': ['--disable-admission-plugins=ServiceAccount'],
      'kube-controller-manager': [
        `--controllers=${controllers},persistentvolume-protection-controller`,
        '--pvclaimbinder-sync-period=500ms',
      ],
    }
    const cluster = stack.use(await startCluster({ name: 'volumes', controllerManager: true, flags }))
    client = await clientOf(cluster.kubeconfig, stack)
    const life = new AbortController()
    stack.defer(() => life.abort())
    rounds = stack.use(new Rounds(life.signal, () => undefined))
    for (const name of ['shop', 'east', 'west', 'kcp-system']) {
      const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }
      await client.create(gvrs.namespaces, namespace, { signal }).catch(() => undefined)
    }
  })
  after(() => stack.disposeAsync())

  const claimOf = (namespace: string, name: string, metadata: object = {}, className = 'nothing'): KubeObject => ({
    ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name, namespace, ...metadata } },
    spec: {
      ...{ accessModes: ['ReadWriteOnce'], storageClassName: className },
      resources: { requests: { storage: '1Mi' } },
    },
  })
  /** A claim with its volume, which its member deletes with it. */
  const bound = async (namespace: string, name: string, metadata: object = {}): Promise<string> => {
    const volume = `${namespace}-${name}`
    const claimRef = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name }
    const path = `/tmp/kcp-no-such-volume-${volume}`
    const spec = {
      ...{ accessModes: ['ReadWriteOnce'], capacity: { storage: '1Mi' }, storageClassName: 'manual' },
      ...{ hostPath: { path }, persistentVolumeReclaimPolicy: 'Delete', claimRef },
    }
    const object = { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: volume }, spec }
    await client.create<KubeObject>(gvrs.volumes, object, { signal })
    await client.create(gvrs.claims, claimOf(namespace, name, metadata, 'manual'), { signal })
    await until(`claim ${namespace}/${name} to be bound`, async () => {
      const found = await client.get<KubeObject>(gvrs.claims, { namespace, name }, { signal })
      return (found['status'] as { phase?: string } | undefined)?.phase === 'Bound'
    })
    return volume
  }
  const until = (what: string, attempt: () => Promise<boolean>): Promise<unknown> =>
    waitFor(attempt, { what, deadlineMs: 30_000 })
  const tryGet = (gvr: (typeof gvrs)[keyof typeof gvrs], name: string, namespace?: string) =>
    client.tryGet<KubeObject>(gvr, { name, ...(namespace && { namespace }) }, { signal })

  /** A client of a member that must not be asked for anything. */
  const nobody = new Proxy({} as KubeClient, {
    get: () => () => Promise.reject(new Error('a member that is gone was asked')),
  })
  const side = (name: string, more: Partial<MemberSide> = {}): MemberSide => ({
    ...{ name, namespace: name, isDraining: false, isEnding: false, isGone: false, serviceNetwork: 'None' },
    client: more.isGone === true ? nobody : client,
    dialPod: () => Promise.reject(new Error('no pod runs')),
    ...more,
  })

  /** A move from east to west of claim `name`, of which both volumes are there. */
  const begin = async (
    name: string,
    { status, where = 'east' }: { readonly status: VolumeMoveStatus; readonly where?: string },
  ): Promise<VolumeMove> => {
    const lock = JSON.stringify({ move: `v-${name}`, to: 'west' })
    const isLocked = where === 'east' && status.phase !== 'Ready'
    const annotations = { [volumeAnnotation]: where, ...(isLocked && { [volumeLockAnnotation]: lock }) }
    const { metadata } = await client.create<KubeObject>(gvrs.claims, claimOf('shop', name, { annotations }), {
      signal,
    })
    await bound('east', name)
    if (where === 'east') await bound('kcp-system', `kcp-v-${name}`, { labels: { [volumeMoveLabel]: `v-${name}` } })
    const spec = { logicalCluster: 'acme', namespace: 'shop', claim: name, claimUid: metadata.uid ?? '' }
    return {
      ...{ apiVersion: 'kcp.dev/v1alpha1', kind: 'VolumeMove', metadata: { name: `v-${name}`, uid: name } },
      spec: { ...spec, from: 'east', to: 'west', way: 'Copy', retainSeconds: 0 },
      status,
    }
  }
  const pool = (perLogicalCluster = 100): Places =>
    new Places({ total: 100, perMember: 100, perLogicalCluster }, () => undefined)
  /** Takes steps until `isEnd`; changes the move's status, as the controller does. */
  const run = async (
    move: VolumeMove,
    isEnd: (outcome: Outcome) => boolean,
    { source = {}, target = {}, ...more }: RunOptions = {},
  ): Promise<Outcome> => {
    const sides = { source: side('east', source), target: side('west', target) }
    const context: MoveContext = {
      ...{ rounds, places: pool(), refreshes: pool(), image: 'kcp', isSourceLost: source.isGone === true },
      ...more.context,
    }
    for (let i = 0; i < 200; i++) {
      const parties: VolumeParties = { move, ...sides, upstream: more.upstream ?? client, signal }
      const outcome = await advance(parties, context)
      move.status = outcome.status
      if (isEnd(outcome)) return outcome
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    throw new Error(`the move is where it was: ${JSON.stringify(move.status)}`)
  }
  interface RunOptions {
    readonly source?: Partial<MemberSide>
    readonly target?: Partial<MemberSide>
    readonly upstream?: KubeClient
    readonly context?: Partial<MoveContext>
  }
  const isOver = ({ isOver: is }: Outcome): boolean => is === true
  /** Takes all steps of phase Binding but the last, after which the claim would have arrived. */
  const untilArrival = async (move: VolumeMove): Promise<void> => {
    const patch = (): Promise<never> => Promise.reject(statusError(503, 'ServiceUnavailable', 'not now'))
    const upstream = { ...client, patch, tryGet: client.tryGet.bind(client), list: client.list.bind(client) }
    const error = await run(move, () => false, { upstream }).catch((reason: unknown) => reason)
    expect(String(error)).to.include('not now')
    const old = await tryGet(gvrs.claims, move.spec.claim, 'east')
    expect(old?.metadata.annotations).to.have.property(keptVolumeAnnotation)
    const claimRef = (await tryGet(gvrs.volumes, move.status?.volumeName ?? ''))?.['spec'] as { claimRef?: object }
    expect(claimRef.claimRef).to.include({ namespace: 'west', name: move.spec.claim })
  }
  const expectTakenBack = async (move: VolumeMove, outcome: Outcome): Promise<void> => {
    expect(outcome.status.phase).to.equal('Cancelled')
    const { claim } = move.spec
    const upstream = await tryGet(gvrs.claims, claim, 'shop')
    expect(upstream?.metadata.annotations).to.deep.equal({ [volumeAnnotation]: 'east' })
    const old = await tryGet(gvrs.claims, claim, 'east')
    expect(old?.metadata.annotations).not.to.have.property(keptVolumeAnnotation)
    expect(old?.metadata.labels ?? {}).not.to.have.property(volumeMoveLabel)
    expect(old?.metadata.deletionTimestamp).to.equal(undefined)
  }

  it('is taken back if its new member is gone before the claim has arrived', async () => {
    const move = await begin('gone', { status: { phase: 'Binding', digest, lastRound } })
    await untilArrival(move)
    const outcome = await run(move, isOver, { target: { isGone: true } })
    await expectTakenBack(move, outcome)
    expect(outcome.obstacle).to.deep.equal({
      reason: 'MemberRemoved',
      message: 'member cluster "west" is not registered any more: the claim stays where it is',
    })
  })
  it('is taken back if its new member is being removed, which deletes the new volume', async () => {
    const move = await begin('ending', { status: { phase: 'Binding', digest, lastRound } })
    await untilArrival(move)
    const outcome = await run(move, isOver, { target: { isEnding: true } })
    await expectTakenBack(move, outcome)
    await until('the new volume to be deleted', async () => {
      const volume = await tryGet(gvrs.volumes, 'kcp-system-kcp-v-ending')
      return volume === undefined
    })
    expect(await tryGet(gvrs.volumes, 'east-ending')).not.to.equal(undefined)
  })
  it('goes on into a member that is being removed if only that has the data', async () => {
    const move = await begin('only', { status: { phase: 'Binding', lostAfter: longAgo, lastRound } })
    const context = { isSourceLost: true }
    await run(move, ({ status }) => status.movedTime !== undefined, { target: { isEnding: true }, context })
    const upstream = await tryGet(gvrs.claims, 'only', 'shop')
    expect(upstream?.metadata.annotations?.[volumeAnnotation]).to.equal('west')
  })
  it('keeps the old volume for the claim if the new member is gone after the claim has arrived', async () => {
    const move = await begin('arrived', { where: 'west', status: { phase: 'Binding', digest, lastRound } })
    const kept = { [keptVolumeAnnotation]: longAgo }
    const metadata = { annotations: kept, labels: { [volumeMoveLabel]: 'v-arrived' } }
    const ref = { namespace: 'east', name: 'arrived' }
    await client.patch(gvrs.claims, ref, 'merge', { metadata }, { signal })
    const target = { isGone: true }
    const { status, obstacle } = await run(move, (outcome) => outcome.obstacle !== undefined, { target })
    expect(status.phase).to.equal('Moved')
    expect(obstacle?.reason).to.equal('MemberRemoved')
    expect(obstacle?.message).to.include('member cluster "east" keeps the old volume until the claim is deleted')
    expect((await tryGet(gvrs.claims, 'arrived', 'east'))?.metadata.deletionTimestamp).to.equal(undefined)
    await client.delete(gvrs.claims, { namespace: 'shop', name: 'arrived' }, { signal })
    await run(move, isOver, { target })
    await until('the old volume to be deleted', async () => (await tryGet(gvrs.volumes, 'east-arrived')) === undefined)
  })

  const mover = async (name: string, namespace: string): Promise<void> => {
    const metadata = { name: `mover-${name}`, namespace, labels: { [volumeMoveLabel]: `v-${name}` } }
    const spec = { containers: [{ name: 'main', image: 'kcp' }] }
    await client.create<KubeObject>(gvrs.pods, { apiVersion: 'v1', kind: 'Pod', metadata, spec }, { signal })
    await client.create<KubeObject>(gvrs.secrets, { apiVersion: 'v1', kind: 'Secret', metadata }, { signal })
  }
  for (const { gone, name, where, left } of [
    { gone: 'target', name: 'finishing', where: 'east', left: 'east-finishing' },
    { gone: 'source', name: 'orphaned', where: 'kcp-system', left: undefined },
  ] as const)
    it(`leaves nothing in the other member if its ${gone} is gone before the data was compared`, async () => {
      const move = await begin(name, { status: { phase: 'Finishing', lastRound } })
      await mover(name, where)
      await run(move, isOver, { [gone]: { isGone: true } })
      expect(move.status?.phase).to.equal('Cancelled')
      for (const gvr of [gvrs.pods, gvrs.secrets])
        await until('the mover to go', async () => (await tryGet(gvr, `mover-${name}`, where)) === undefined)
      expect((await tryGet(gvrs.claims, name, 'shop'))?.metadata.annotations).not.to.have.property(volumeLockAnnotation)
      if (left !== undefined) expect(await tryGet(gvrs.volumes, left)).not.to.equal(undefined)
      else
        await until(
          'the new volume to go',
          async () => (await tryGet(gvrs.volumes, `kcp-system-kcp-v-${name}`)) === undefined,
        )
    })
  it('leaves a copy that was kept up to date if the member with the data is gone', async () => {
    const move = await begin('replica', { status: { phase: 'Ready', lastRound } })
    const replicated = { ...move, spec: { ...move.spec, way: 'Replicate' as const, everySeconds: 30 } }
    await run(replicated, isOver, { source: { isGone: true } })
    expect(await tryGet(gvrs.volumes, 'kcp-system-kcp-v-replica')).not.to.equal(undefined)
    expect((await tryGet(gvrs.claims, 'kcp-v-replica', 'kcp-system'))?.metadata.deletionTimestamp).to.equal(undefined)
  })

  describe('that is copied, beside others', () => {
    const names = ['first', 'second', 'third']
    const refreshes = pool(1)
    const moves = new Map<string, VolumeMove>()
    const place = (name: string, placed: PlacedOn): Promise<unknown> =>
      client.patch(
        deployments,
        { namespace: 'shop', name },
        'merge',
        { metadata: { annotations: { [placedOnAnnotation]: JSON.stringify(placed) } } },
        { signal },
      )
    before(async () => {
      for (const name of names) {
        moves.set(name, await begin(name, { status: { phase: 'Ready', rounds: 1, lastRound } }))
        const labels = { app: name }
        const template = {
          metadata: { labels },
          spec: {
            containers: [{ name: 'main', image: 'kcp' }],
            volumes: [{ name: 'data', persistentVolumeClaim: { claimName: name } }],
          },
        }
        const workload: KubeObject = {
          ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace: 'shop' } },
          spec: { selector: { matchLabels: labels }, template },
        }
        await client.create(deployments, workload, { signal })
        await place(name, {
          east: { state: 'Serving', wait: { gate: 'VolumesCopied', since: longAgo, then: 'Waits' } },
          west: { state: 'Assumed' },
        })
      }
    })
    const look = async (name: string): Promise<Outcome | Obstacle> => {
      const move = moves.get(name)!
      try {
        const outcome = await run(move, () => true, { context: { refreshes } })
        return outcome
      } catch (error) {
        if (error instanceof Obstacle) return error
        throw error
      }
    }
    /** The moves that have movers, which never get ready: there is no node. */
    const moving = async (): Promise<string[]> => {
      const { items } = await client.list<KubeObject>(gvrs.pods, { labelSelector: volumeMoveLabel, signal })
      const live = items.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      return live.map(({ metadata }) => `${metadata.namespace}/${metadata.labels?.[volumeMoveLabel]}`).sort()
    }
    const both = (name: string): string[] => [`east/v-${name}`, `kcp-system/v-${name}`]

    it('has movers for its next round only with a place, and says that it waits', async () => {
      for (let i = 0; i < 2; i++) {
        expect(await look('first'))
          .to.be.instanceOf(Obstacle)
          .with.property('reason', 'Starting')
        for (const name of ['second', 'third']) {
          const { status, obstacle, againSeconds } = (await look(name)) as Outcome
          expect(againSeconds).to.equal(2)
          // The workload may stop all the same.
          expect(status.phase).to.equal('Ready')
          expect(obstacle?.reason).to.equal('Queued')
          expect(obstacle?.message).to.match(
            /^is copied, as it was at 2026-01-01T00:00:00Z; the next round waits for .* before it, since 2026-01-01T00:00:20Z: one volume is copied at a time for one logical cluster$/,
          )
        }
        expect(await moving()).to.deep.equal(both('first'))
      }
    })
    it('is looked at rarely while it waits for a place and no workload waits for it', async () => {
      await place('third', { east: { state: 'Serving' } })
      const { status, obstacle, againSeconds } = (await look('third')) as Outcome
      expect([status.phase, obstacle?.reason]).to.deep.equal(['Ready', 'Queued'])
      expect(againSeconds).to.be.within(30, 60)
    })
    it('gets its last round without a place', async () => {
      await place('third', { west: { state: 'Assumed' } })
      expect(await look('third'))
        .to.be.instanceOf(Obstacle)
        .with.property('reason', 'Starting')
      expect(await moving()).to.deep.equal([...both('first'), ...both('third')].sort())
    })
    it('ends its movers between two rounds if others wait for the place', async () => {
      const first = moves.get('first')!
      first.status = { ...first.status, lastRound: { ...lastRound, completionTime: new Date().toISOString() } }
      const outcome = (await look('first')) as Outcome
      expect([outcome.status.phase, outcome.obstacle]).to.deep.equal(['Ready', undefined])
      await until('the movers of the first to go', async () => !(await moving()).includes('east/v-first'))
      expect(await look('second'))
        .to.be.instanceOf(Obstacle)
        .with.property('reason', 'Starting')
      expect(await moving()).to.include.members(both('second'))
    })
    it('keeps its movers, however long it is until its next round, if nobody waits for the place', async () => {
      const second = moves.get('second')!
      const completionTime = new Date().toISOString()
      second.status = { ...second.status, lastRound: { ...lastRound, seconds: 1000, completionTime } }
      expect(refreshes.areWanted).to.equal(false)
      expect(await look('second'))
        .to.be.instanceOf(Obstacle)
        .with.property('reason', 'Starting')
      expect(await moving()).to.include.members(both('second'))
    })
  })
})
