// The controller of VolumeMoves: performs them, tells how far they are, and removes what they leave in members.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import { systemClock, timestamp } from '#async/index.ts'
import { keyFor, type DeepReadonly } from '#client/index.ts'
import {
  contentHash,
  defaultVolumeMoveLimits,
  newEvent,
  setCondition,
  volumeMoveFinalizer,
  volumeMoves,
  type MemberCluster,
  type VolumeMove,
  type VolumeMoveLimits,
  type VolumeMovePhase,
  type VolumeMoveStatus,
} from '#crds/index.ts'
import { loopWithMembers } from '#operator/framework/loop.ts'
import type { OperatorContext, OperatorController } from '#operator/framework/operator-context.ts'
import { recordEvent, type EventText } from '#operator/framework/record-event.ts'
import { unreachableSince } from '#placement/index.ts'
import type { ReconcileResult } from '#reconcile/index.ts'
import { unlock } from './claim.ts'
import { gvrs, Obstacle, partiesOf, type MemberAccess, type VolumeParties } from './parties.ts'
import { advance, candidateOf, obstacleOf, pause, undo, type MoveContext, type Outcome } from './phases.ts'
import { mayBeRefreshed, mayHavePlace, Places } from './places.ts'
import { Rounds } from './rounds.ts'
import { mayTell } from './tell.ts'

export interface VolumeMoveDeps {
  /** The members whose syncers run. */
  readonly accessOf: (member: string) => MemberAccess | undefined
  /** Calls the listener with each member whose syncer starts. Returns the function that ends this. */
  readonly onSyncerStarted: (listener: (member: string) => void) => () => void
  /** The image of kcp for movers. */
  readonly image: string
  readonly limits?: VolumeMoveLimits
}

/** Whether the member does not answer and is fenced. */
function isLostMember(member: DeepReadonly<MemberCluster> | undefined): boolean {
  return member?.spec?.fenced === true && unreachableSince(member) !== undefined
}

const events = { group: '', version: 'v1', resource: 'events' } as const

/** Performs VolumeMoves. */
export function volumeMoveController(deps: VolumeMoveDeps): OperatorController {
  return loopWithMembers('volume-moves', ({ context, members, stack, signal }) => {
    const informer = context.informers.of<VolumeMove>(volumeMoves)
    let add: (key: string) => void = () => undefined
    const rounds = stack.use(new Rounds(signal, (move) => add(move)))
    const pool = (): Places =>
      new Places(deps.limits ?? defaultVolumeMoveLimits, (move) => {
        rounds.stateOf(move).wellAt = systemClock.now()
        add(move)
      })
    const [places, refreshes] = [pool(), pool()]
    const keeper = new VolumeMoves(context, {
      ...deps,
      rounds,
      places,
      refreshes,
      isKnown: (name) => members.store.get(name) !== undefined,
      isLost: (name) => isLostMember(members.store.get(name)),
    })
    return {
      workers: 8,
      fairnessKey: (key) => key,
      informers: [informer],
      follow: (put) => {
        add = put
        for (const move of informer.store.list()) resumePlace(move, { rounds, places })
        return [
          informer.onChange(({ key, before, after }) => {
            if (after === undefined)
              for (const each of [places, refreshes]) each.giveBack(key, before?.spec.logicalCluster ?? '')
            const isSame =
              before?.metadata.generation === after?.metadata.generation &&
              before?.metadata.deletionTimestamp === after?.metadata.deletionTimestamp
            if (!isSame || before === undefined || after === undefined) put(key)
          }),
          deps.onSyncerStarted((member) => {
            for (const { metadata, spec } of informer.store.list())
              if (spec.from === member || spec.to === member) put(metadata.name)
          }),
        ]
      },
      reconcile: async (key, life) => {
        const move = informer.store.get(key)
        if (move === undefined) rounds.forget(key)
        return move === undefined ? {} : await keeper.reconcile(move, life)
      },
    }
  })
}

/** Gives the move the place that it had under the process before this one. */
function resumePlace(move: DeepReadonly<VolumeMove>, { rounds, places }: Pick<MoveContext, 'rounds' | 'places'>): void {
  const { phase, rounds: done } = move.status ?? {}
  const reason = move.status?.conditions?.find(({ type }) => type === 'Progressing')?.reason
  const isCopying = phase !== undefined && mayHavePlace(phase) && reason !== 'Queued'
  // The last round of a move that has copied before needs none.
  const isLast = phase === 'Finishing' && done !== undefined && done > 0
  const isCopied = move.spec.way === 'Snapshot' || move.spec.way === 'Shared' || isLast
  if (!isCopying || isCopied) return
  const state = rounds.stateOf(move.metadata.name)
  state.wellAt = systemClock.now()
  places.resume(candidateOf(move, state))
}

/** What the move has waited for until now: a step that takes seconds changes nothing about it. */
function obstacleBefore({ status }: VolumeMove): Outcome['obstacle'] {
  const before = status?.conditions?.find(({ type }) => type === 'Progressing')
  return before?.status === 'False' && before.reason !== 'Queued'
    ? { reason: before.reason, message: before.message }
    : undefined
}

/** For so long after the start of the process, a member whose syncer does not run yet is no obstacle. */
const startMs = 30_000
/** After how long without a good round a move lends its place to another one that waits. */
const stuckMs = 5 * 60_000

interface KeeperDeps extends VolumeMoveDeps, Omit<MoveContext, 'image' | 'isSourceLost'> {
  /** Whether there is a MemberCluster of this name. */
  readonly isKnown: (member: string) => boolean
  readonly isLost: (member: string) => boolean
}

class VolumeMoves {
  readonly #context: OperatorContext
  readonly #deps: KeeperDeps
  readonly #began = performance.now()

  constructor(context: OperatorContext, deps: KeeperDeps) {
    this.#context = context
    this.#deps = deps
  }

  async reconcile(cached: DeepReadonly<VolumeMove>, signal: AbortSignal): Promise<ReconcileResult> {
    const { clusters } = this.#context
    const { name } = cached.metadata
    // Our own writes may not be in the cache yet, and a phase must not be gone through twice.
    const move = await clusters.tryGet<VolumeMove>(volumeMoves, { name }, { signal })
    if (move === undefined) return {}
    const { finalizers = [], deletionTimestamp, resourceVersion } = move.metadata
    if (!finalizers.includes(volumeMoveFinalizer)) {
      if (deletionTimestamp !== undefined) return {}
      const metadata = { resourceVersion, finalizers: [...finalizers, volumeMoveFinalizer] }
      await clusters.patch(volumeMoves, { name }, 'merge', { metadata }, { signal })
      return { requeueAfterSeconds: 0.05 }
    }
    const outcome = await this.#attempt(move, signal)
    await this.#write(move, outcome, signal)
    const { places, refreshes, rounds } = this.#deps
    const { phase } = outcome.status
    const isDone = outcome.isOver === true || !mayHavePlace(phase)
    if (isDone || rounds.stateOf(name).isCopied === true) places.giveBack(name, move.spec.logicalCluster)
    if (outcome.isOver === true || !mayBeRefreshed(phase)) refreshes.giveBack(name, move.spec.logicalCluster)
    if (outcome.isOver === true) return await this.#end(move, signal)
    return { requeueAfterSeconds: outcome.againSeconds ?? 5 }
  }

  async #attempt(move: VolumeMove, signal: AbortSignal): Promise<Outcome> {
    const status: VolumeMoveStatus = { ...move.status }
    let parties: VolumeParties | undefined
    try {
      const { from, to } = move.spec
      if (![from, to].some((member) => this.#deps.isKnown(member))) return await this.#abandon(move, status, signal)
      const isSourceLost = !this.#deps.isKnown(from) || this.#deps.isLost(from)
      const context = { ...this.#deps, isSourceLost }
      parties = await partiesOf(move, this.#context, { accessOf: this.#deps.accessOf, isSourceLost, signal })
      if (parties === undefined) return { status, isOver: true }
      const isDeleted = move.metadata.deletionTimestamp !== undefined
      const mayEnd = status.phase !== 'Binding' && status.phase !== 'Moved'
      if (isDeleted && mayEnd) return await undo(parties, context, status)
      return await advance(parties, context)
    } catch (error) {
      signal.throwIfAborted()
      const { reason, message, againSeconds } = obstacleOf(error)
      if (!(error instanceof Obstacle))
        this.#context.log.warn('a move of a volume failed', { move: move.metadata.name, error })
      const isStart = reason === 'Unreachable' && performance.now() - this.#began < startMs
      const isBrief = reason === 'Starting' || reason === 'Working' || isStart
      const obstacle = isBrief ? obstacleBefore(move) : { reason, message }
      if (this.#isStuck(move)) await this.#lendPlace(move, parties, signal)
      if (isBrief && this.#deps.places.has(move.metadata.name)) delete status.summary
      return { status, ...(obstacle && { obstacle }), againSeconds }
    }
  }

  /** Whether the move has a place, gets nowhere, and other moves wait. */
  #isStuck({ metadata: { name } }: VolumeMove): boolean {
    const { places, refreshes, rounds } = this.#deps
    if (![places, refreshes].some((pool) => pool.has(name) && pool.areWanted)) return false
    const { round, wellAt = Infinity } = rounds.stateOf(name)
    return round === undefined && systemClock.now() - wellAt > stuckMs
  }

  /** Lets another move have the place of one that gets nowhere, which begins again when its turn comes. */
  async #lendPlace(
    { metadata: { name }, spec: { logicalCluster } }: VolumeMove,
    parties: VolumeParties | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { rounds, places, refreshes } = this.#deps
    const nowMs = systemClock.now()
    Object.assign(rounds.stateOf(name), { askedAt: nowMs, lentAt: nowMs })
    for (const pool of [places, refreshes]) pool.giveBack(name, logicalCluster)
    try {
      if (parties !== undefined) await pause(parties, this.#deps)
    } catch (error) {
      signal.throwIfAborted()
      // Its movers are deleted when it is looked at the next time.
      this.#context.log.debug('could not stop the movers of a move', { move: name, error })
    }
  }

  /** Neither member is registered any more: what is left there cannot be removed. */
  async #abandon(move: VolumeMove, status: VolumeMoveStatus, signal: AbortSignal): Promise<Outcome> {
    this.#deps.rounds.forget(move.metadata.name)
    const upstream = this.#context.virtual(`/clusters/${move.spec.logicalCluster}`)
    const access = { move, upstream, signal }
    const found = await upstream
      .tryGet<KubeObject>(gvrs.claims, { namespace: move.spec.namespace, name: move.spec.claim }, { signal })
      .catch(tolerate('NotFound'))
    if (found?.metadata.uid === move.spec.claimUid) await unlock(access, found)
    return { status: status.phase === 'Moved' ? status : { ...status, phase: 'Cancelled' }, isOver: true }
  }

  /** Deletes the object; its finalizer goes first, because nothing is left in members. */
  async #end({ metadata: { name, uid } }: VolumeMove, signal: AbortSignal): Promise<ReconcileResult> {
    const { clusters } = this.#context
    this.#deps.rounds.forget(name)
    const now = await clusters.tryGet<VolumeMove>(volumeMoves, { name }, { signal })
    if (now?.metadata.uid !== uid || now === undefined) return {}
    const finalizers = (now.metadata.finalizers ?? []).filter((one) => one !== volumeMoveFinalizer)
    if (now.metadata.deletionTimestamp === undefined)
      await clusters.delete(volumeMoves, { name }, { ...(uid && { uid }), signal }).catch(tolerate('NotFound'))
    await clusters
      .patch(volumeMoves, { name }, 'merge', { metadata: { finalizers } }, { signal })
      .catch(tolerate('NotFound'))
    return {}
  }

  async #write(move: VolumeMove, { status, obstacle }: Outcome, signal: AbortSignal): Promise<void> {
    const { clusters } = this.#context
    const { name, generation = 0 } = move.metadata
    const now = timestamp(systemClock.now())
    const { phase = 'Preparing' } = status
    const progressing = obstacle ?? { reason: phase, message: status.summary ?? '' }
    const updates = [
      { type: 'Progressing', status: obstacle === undefined ? ('True' as const) : ('False' as const), ...progressing },
      {
        type: 'Moved',
        status: phase === 'Moved' ? ('True' as const) : ('False' as const),
        ...(phase === 'Moved' ? { reason: 'Moved', message: status.summary ?? '' } : { reason: phase, message: '' }),
      },
      ...(status.digest === undefined
        ? []
        : [
            {
              type: 'Verified',
              status: 'True' as const,
              reason: 'Compared',
              message: `both volumes have the hash ${status.digest}`,
            },
          ]),
    ]
    const conditions = updates.reduce<ReturnType<typeof setCondition>>(
      (list, update) => setCondition(list, { ...update, observedGeneration: generation }, now),
      move.status?.conditions ?? [],
    )
    const after: Record<string, unknown> = { ...status, phase, observedGeneration: generation, conditions }
    const gone = Object.keys(move.status ?? {}).filter((field) => !(field in after))
    const before = (move.status ?? {}) as Record<string, unknown>
    const isSame = Object.entries(after).every(
      ([field, value]) => JSON.stringify(value) === JSON.stringify(before[field]),
    )
    if (isSame && gone.length === 0) return
    const patch = { status: { ...after, ...Object.fromEntries(gone.map((field) => [field, null])) } }
    await clusters
      .patch(volumeMoves, { name }, 'merge', patch, { subresource: 'status', signal })
      .catch(tolerate('NotFound'))
    await this.#tell(move, { phase, obstacle, summary: status.summary }, now, signal)
  }

  /** Events on the VolumeMove for admins, and on the claim for its tenant, when the phase or the obstacle changes. */
  async #tell(
    move: VolumeMove,
    {
      phase,
      obstacle,
      summary = '',
    }: { phase: VolumeMovePhase; obstacle: Outcome['obstacle']; summary: string | undefined },
    now: string,
    signal: AbortSignal,
  ): Promise<void> {
    const before = move.status?.conditions?.find(({ type }) => type === 'Progressing')
    const reason = obstacle?.reason ?? phase
    if (before?.reason === reason) return
    const { eventsAt } = this.#deps.rounds.stateOf(move.metadata.name)
    if (!mayTell(eventsAt, reason, Date.parse(now))) return
    const tale = taleOf(move, phase)
    const text: EventText = {
      type: obstacle === undefined || obstacle.reason === 'Queued' ? 'Normal' : 'Warning',
      reason: obstacle?.reason ?? tale.reason,
      message: obstacle?.message ?? `${tale.text}${summary === '' ? '' : `: ${summary}`}`,
    }
    const { clusters, log } = this.#context
    await recordEvent(move, text, { client: clusters, component: 'kcp-volumes', now, log }, signal)
    await this.#tellTenant(move, text, now, signal)
  }

  async #tellTenant(move: VolumeMove, text: EventText, now: string, signal: AbortSignal): Promise<void> {
    const { logicalCluster, namespace, claim: name, claimUid: uid } = move.spec
    const event = newEvent({
      metadata: { namespace, name: `${name.slice(0, 200)}.${contentHash([move.metadata.uid, now, text])}` },
      about: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid },
      component: 'kcp-volumes',
      ...text,
      now,
    })
    try {
      await this.#context.virtual(`/clusters/${logicalCluster}`).create(events, event, { signal })
    } catch (error) {
      // An Event is a help only.
      signal.throwIfAborted()
      this.#context.log.debug('could not write an event', {
        claim: keyFor({ cluster: logicalCluster, namespace, name }),
        error,
      })
    }
  }
}

interface Tale {
  readonly reason: string
  readonly text: string
}

/** The Event of the phase. */
function taleOf({ spec: { way, from, to, snapshot } }: VolumeMove, phase: VolumeMovePhase): Tale {
  const { reason, text } = tales[phase]
  if (way !== 'Restore') return { reason, text: `${text} (from member cluster "${from}" to "${to}")` }
  const where = `(snapshot "${snapshot?.name ?? ''}", member cluster "${to}")`
  if (phase === 'Moved') return { reason: 'VolumeRestored', text: `its volume is restored from a snapshot ${where}` }
  if (phase === 'Cancelled') return { reason, text: `its volume is not restored from a snapshot ${where}` }
  return { reason: 'VolumeRestoring', text: `its volume is made from a snapshot ${where}` }
}

const tales: Readonly<Record<VolumeMovePhase, Tale>> = {
  Preparing: { reason: 'VolumePreparing', text: 'its volume is going to move' },
  Copying: { reason: 'VolumeCopying', text: 'its volume is copied while the application runs' },
  Ready: { reason: 'VolumeReady', text: 'its volume is copied, and the application may stop' },
  Finishing: {
    reason: 'VolumeFinishing',
    text: 'the application has stopped; the last changes are copied, and all data is compared',
  },
  Binding: { reason: 'VolumeBinding', text: 'the claim gets its new volume' },
  Moved: { reason: 'VolumeMoved', text: 'its volume has moved' },
  Cancelled: { reason: 'VolumeCancelled', text: 'its volume stays where it is' },
}
