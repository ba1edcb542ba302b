// The phases of a VolumeMove. Each reconcile looks at what is there and takes the next step; every step may run twice.
import { quantityOf } from '#apimachinery/quantity/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { memberOfClaim } from '#placement/index.ts'
import { systemClock, timestamp } from '#async/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import { volumeSourceOf, type VolumeMove, type VolumeMovePhase, type VolumeMoveStatus } from '#crds/index.ts'
import { MoverError, type RoundMode, type RoundResult } from '#mover/index.ts'
import {
  arrive,
  attachedTo,
  claimInSource,
  claimUpstream,
  deleteKept,
  goesOn,
  isConsented,
  isLossAccepted,
  isOwned,
  keep,
  keepNoMore,
  lock,
  lockOf,
  mayBeginEmpty,
  unlock,
  workloadsOf,
  type Claim,
} from './claim.ts'
import { ensureMover, moversIn, removeMovers, usersOf, type Mover } from './movers.ts'
import {
  abandonVolume,
  ensureNewClaim,
  missingRight,
  newClaimName,
  newVolumeName,
  requireRoom,
  protect,
  release,
  removeNewClaim,
  reserve,
} from './new-volume.ts'
import { Obstacle, type MemberSide, type VolumeParties } from './parties.ts'
import type { Candidate, Places, PlaceWait } from './places.ts'
import type { MoveState, Rounds, Ways } from './rounds.ts'
import {
  checkShared,
  forgetShared,
  importSnapshot,
  removeSnapshots,
  requireDriver,
  restoreSnapshot,
  sharedVolumeName,
  snapshotClassOf,
  shareVolume,
  unshare,
} from './shared-backend.ts'
import { bytesText, expectedDowntime, notKeptTexts, progressText, secondsText } from './tell.ts'

export interface MoveContext {
  readonly rounds: Rounds
  readonly places: Places
  /**
   * Places for rounds of volumes that are copied, until the application stops. They are others than those for copying:
   * copies take hours, and a volume that waits for them would be older and older.
   */
  readonly refreshes: Places
  /** The image of kcp for movers. */
  readonly image: string
  /** Whether the old member does not answer, and an admin has made sure that nothing runs there. */
  readonly isSourceLost: boolean
}

/** What one reconcile found. */
export interface Outcome {
  readonly status: VolumeMoveStatus
  /** Why it waits; absent: it goes on. */
  readonly obstacle?: { readonly reason: string; readonly message: string }
  readonly againSeconds?: number
  /** The move is over, and nothing of it is left. */
  readonly isOver?: true
}

/** Seconds between two looks while a round runs, and between two rounds when the application may stop. */
const lookSeconds = 2
const restSeconds = 20
/** A round that is shorter than this, in seconds, is short enough to be repeated without the application. */
const shortSeconds = 20
const maxRounds = 12
/** After this many seconds without a round, another one is made before the application stops. */
const freshSeconds = 120

/** Takes the next step. Rejects with Obstacle, StatusError. */
export async function advance(parties: VolumeParties, context: MoveContext): Promise<Outcome> {
  const { move } = parties
  const status: VolumeMoveStatus = structuredClone((move.status ?? {}) as VolumeMoveStatus)
  const phase = status.phase ?? 'Preparing'
  const claim = await claimUpstream(parties)
  if (phase === 'Moved') return await finish(parties, context, status, claim)
  // The tenant has deleted the claim, and its data with it.
  if (claim === undefined) {
    if (phase === 'Binding') await discard(parties, status)
    return await undo(parties, context, status)
  }
  if (phase === 'Binding') return await bind(parties, context, status, claim)
  const gone = removedOf(parties)
  if (gone !== undefined) return { ...(await undo(parties, context, status)), obstacle: removed(gone) }
  // Its end has begun.
  if (phase === 'Cancelled') return await undo(parties, context, status)
  const { from } = move.spec
  if (move.spec.way === 'Restore' && volumeSourceOf(claim) === undefined)
    return {
      ...(await undo(parties, context, status)),
      obstacle: { reason: 'Outdated', message: 'the claim does not wait for its volume any more' },
    }
  if (memberOfClaim(claim) !== from)
    return {
      ...(await undo(parties, context, status)),
      obstacle: { reason: 'Outdated', message: `the data of the claim is not in member cluster "${from}"` },
    }
  if (context.isSourceLost) return await failOver(parties, context, status, claim)
  if (move.spec.way === 'Restore') return await fill(parties, context, { ...status, phase }, claim)
  const wayOf = move.spec.way === 'Copy' || move.spec.way === 'Replicate' ? copy : handOver
  return await wayOf(parties, context, { ...status, phase }, claim)
}

function removedOf({ source, target }: VolumeParties): MemberSide | undefined {
  return [source, target].find(({ isGone }) => isGone)
}

/** Why the claim stays where it is: an admin has removed one of the members. */
function removed({ name, isGone }: MemberSide): NonNullable<Outcome['obstacle']> {
  const what = isGone ? 'is not registered any more' : 'is being removed'
  return { reason: 'MemberRemoved', message: `member cluster "${name}" ${what}: the claim stays where it is` }
}

/** Movers, rounds, and the last one. */
async function copy(
  parties: VolumeParties,
  { rounds, places, refreshes, image }: MoveContext,
  status: VolumeMoveStatus,
  claim: Claim,
): Promise<Outcome> {
  const { move, signal } = parties
  const { name } = move.metadata
  const state = rounds.stateOf(name)
  const pools = { rounds, places, refreshes }
  const old = await claimInSource(parties)
  const users = await usersOf(parties, move.spec.claim)
  const { inSource, isAwaited } = await workloadsOf(parties, claim)
  const isPlaced = users.length > 0 || inSource.length > 0
  if (isPlaced && lockOf(claim)?.move === name) {
    state.round?.end()
    await unlock(parties, claim)
    status.phase = 'Copying'
  }
  const seen = takeEnded(state, status)
  if (seen.error !== undefined) throw seen.error
  if (seen.isVerified && !isPlaced) {
    await requireRoom(parties, await newVolumeName(parties), claim)
    return { status: { ...seen.status, phase: 'Binding' }, againSeconds: 0.05 }
  }
  // A claim that one pod at a time may use cannot be read beside the application.
  const isExclusive = old.spec?.accessModes?.includes('ReadWriteOncePod') === true
  if (isPlaced && isExclusive) {
    await removeMovers(parties, 'source')
    return await ready(parties, { ...seen.status, bytes: capacityOf(old) }, { state, claim, old, isAwaited })
  }
  const isCopied = seen.status.phase === 'Ready' || isShort(state, seen.status)
  if (isPlaced && isCopied && isWaitingForConsent(parties, claim, isAwaited)) {
    // Nobody knows when the tenant agrees, so nothing is copied meanwhile, and no pod waits.
    await pause(parties, pools)
    return await ready(parties, seen.status, { state, claim, old, isAwaited })
  }
  const isDue = seen.status.phase === 'Ready' || (isCopied && isFresh(seen.status, move.spec))
  state.isCopied = isDue
  if (!isDue && state.round === undefined && isBeforeEnd(seen.status.phase)) {
    const wait = places.take(candidateOf(move, state))
    if (wait !== undefined) {
      await rest(parties, state)
      return queued(seen.status, wait)
    }
    state.wellAt ??= systemClock.now()
  }
  const isStopped = !isPlaced && isAwaited
  const refreshAt = refreshAtMs(seen.status, move.spec, isAwaited)
  if (isDue && !isStopped && state.round === undefined && seen.status.phase !== 'Finishing') {
    const candidate = { ...candidateOf(move, state), sinceMs: refreshAt }
    const wait = refreshWait(candidate, refreshes, { ...state, isAwaited })
    if (wait !== undefined) {
      if (wait === 'rests') refreshes.giveBack(name, move.spec.logicalCluster)
      delete state.wellAt
      await rest(parties, state)
      const found = await ready(parties, seen.status, { state, claim, old, isAwaited })
      // A place that becomes free for it is told, so nobody who needs the copy now waits for a look.
      const mayWait = wait !== 'rests' && !isAwaited
      return { ...late(found, refreshAt, wait), ...(mayWait && { againSeconds: placeSeconds(wait) }) }
    }
    state.wellAt ??= systemClock.now()
  }
  if (isStopped || !isDue) refreshes.giveBack(name, move.spec.logicalCluster)
  state.isResting = false
  const credentials = await rounds.credentialsOf(name)
  await ensureNewClaim(parties, { old, upstream: claim })
  const isBlock = old.spec?.volumeMode === 'Block'
  const node = users.map((pod) => (pod['spec'] as { nodeName?: string } | undefined)?.nodeName).find(Boolean)
  const wish = { image, credentials, isBlock }
  const found = await Promise.allSettled([
    ensureMover(parties, { ...wish, role: 'source', claim: move.spec.claim, ...(node !== undefined && { node }) }),
    ensureMover(parties, { ...wish, role: 'target', claim: newClaimName(move) }),
  ])
  const lost = found.find((one) => one.status === 'rejected')
  if (lost !== undefined) throw lost.reason
  const [from, to] = found.map((one) => (one as PromiseFulfilledResult<Mover>).value) as [Mover, Mover]
  const ways = { source: from.dial, target: to.dial, direct: directWay(parties, from) }
  if (isStopped) return await last(parties, { rounds, ways, state, status: seen.status, old, claim })
  if (state.round !== undefined)
    return running(state, { ...seen.status, phase: seen.status.phase === 'Ready' ? 'Ready' : 'Copying' })
  if (!isDue) {
    rounds.start(name, roundWish(move, 'copy'), ways)
    return running(state, { ...seen.status, phase: 'Copying' })
  }
  if (refreshAt <= systemClock.now()) rounds.start(name, roundWish(move, 'copy'), ways)
  signal.throwIfAborted()
  return late(await ready(parties, seen.status, { state, claim, old, isAwaited }), refreshAt)
}

/** When a volume that is copied has its next round, in Unix milliseconds. */
function refreshAtMs(
  status: VolumeMoveStatus,
  { everySeconds = restSeconds }: DeepReadonly<VolumeMove>['spec'],
  isAwaited: boolean,
): number {
  const { completionTime, seconds = 0 } = status.lastRound ?? {}
  // A round of a large volume reads much, even if nothing has changed.
  const pauseSeconds = isAwaited ? Math.max(restSeconds, seconds * 2) : everySeconds
  return completionTime === undefined ? 0 : Date.parse(completionTime) + pauseSeconds * 1000
}

/**
 * For how long before their next round movers stay, if nobody needs their place: they take seconds to start. Those of a
 * volume for which a workload waits stay until then, because the application may stop at any time.
 */
const warmMs = 60_000

/**
 * Why the movers of a volume that is copied do not run: its next round is not due, or there is no place for it.
 * Undefined: they may run.
 */
function refreshWait(
  move: Candidate,
  refreshes: Places,
  { lentAt = 0, isAwaited }: Pick<MoveState, 'lentAt'> & Pick<Readiness, 'isAwaited'>,
): 'rests' | PlaceWait | undefined {
  const leftMs = move.sinceMs - systemClock.now()
  if (leftMs <= 0) return refreshes.take({ ...move, sinceMs: Math.max(move.sinceMs, lentAt) })
  const isNeeded = isAwaited || leftMs <= warmMs
  return isNeeded && !refreshes.areWanted && refreshes.tryTake(move) ? undefined : 'rests'
}

/** How late the round of a copied volume may be before its users are told, milliseconds. */
const lateMs = 60_000

/** Looks again when the next round is due, and tells that it waits for a place, if nothing else is in the way. */
function late(outcome: Outcome, refreshAt: number, wait?: 'rests' | PlaceWait): Outcome {
  const leftMs = refreshAt - systemClock.now()
  const againSeconds = Math.min(outcome.againSeconds ?? lookSeconds, Math.max(lookSeconds, leftMs / 1000))
  const isWaiting = wait !== undefined && wait !== 'rests' && leftMs < -lateMs
  if (!isWaiting || outcome.obstacle !== undefined) return { ...outcome, againSeconds }
  const { completionTime = '' } = outcome.status.lastRound ?? {}
  const message = `is copied, as it was at ${completionTime}; the next round ${waitText(wait)}`
  return { ...outcome, obstacle: { reason: 'Queued', message }, againSeconds }
}

/** The address at which the new member reaches the mover of the old one, if their pods reach each other. */
function directWay({ source, target }: VolumeParties, { direct }: Mover): Ways['direct'] {
  const apart = [source, target].find(({ serviceNetwork }) => serviceNetwork !== 'Flat')
  if (apart !== undefined)
    return { whyNot: `pods of member cluster "${apart.name}" have service network "${apart.serviceNetwork}", not Flat` }
  return direct
}

/** Seconds since the last round ended; infinite before the first one has. */
function sinceRound({ lastRound }: VolumeMoveStatus): number {
  return lastRound === undefined ? Infinity : (systemClock.now() - Date.parse(lastRound.completionTime)) / 1000
}

/** Whether what has changed since the last round is about as much as between two rounds. */
function isFresh(status: VolumeMoveStatus, { everySeconds = 0 }: DeepReadonly<VolumeMove>['spec']): boolean {
  return sinceRound(status) <= Math.max(freshSeconds, everySeconds * 3) + (status.lastRound?.seconds ?? 0)
}

/** Whether the application has not been stopped for the move. */
function isBeforeEnd(phase: VolumeMovePhase | undefined): boolean {
  return phase === undefined || phase === 'Preparing' || phase === 'Copying'
}

function isWaitingForConsent({ move }: VolumeParties, claim: Claim, isAwaited: boolean): boolean {
  const { way, requireConsent, to } = move.spec
  return way === 'Copy' && requireConsent === true && isAwaited && !isConsented(claim, to)
}

/** The move as it asks for a place. */
export function candidateOf({ metadata, spec }: DeepReadonly<VolumeMove>, state: MoveState): Candidate {
  const { logicalCluster, from, to } = spec
  state.askedAt ??= Date.parse(metadata.creationTimestamp ?? '') || systemClock.now()
  return { name: metadata.name, logicalCluster, from, to, sinceMs: state.askedAt }
}

/** The move waits for its place. How many moves are before it is looked up rarely: each look costs as much as they are. */
function queued(status: VolumeMoveStatus, wait: PlaceWait): Outcome {
  const message = waitText(wait)
  return {
    status: { ...status, summary: message },
    obstacle: { reason: 'Queued', message },
    againSeconds: placeSeconds(wait),
  }
}

function placeSeconds({ ahead }: PlaceWait): number {
  return Math.min(600, 30 + ahead)
}

function waitText({ ahead, sinceMs, why }: PlaceWait): string {
  return `waits for ${ahead === 1 ? 'one move' : `${ahead} moves`} before it, since ${timestamp(sinceMs)}: ${why}`
}

/** Ends what the move does in both members, and gives its place back. What it has copied stays. */
export async function pause(
  parties: VolumeParties,
  { rounds, places, refreshes }: Pick<MoveContext, 'rounds' | 'places' | 'refreshes'>,
): Promise<void> {
  const { name } = parties.move.metadata
  const state = rounds.stateOf(name)
  state.round?.end()
  delete state.wellAt
  for (const pool of [places, refreshes]) pool.giveBack(name, parties.move.spec.logicalCluster)
  await rest(parties, state)
}

/** Deletes the movers of a move that waits. */
async function rest(parties: VolumeParties, state: MoveState): Promise<void> {
  if (state.isResting === true) return
  const areGone = [await removeMovers(parties, 'source'), await removeMovers(parties, 'target')]
  state.isResting = !areGone.includes(false)
}

/** The size of the volume, in bytes: the most that it can hold. */
function capacityOf({ status, spec }: Claim): number {
  const text = status?.capacity?.storage ?? spec?.resources?.requests?.storage ?? '0'
  return Number(quantityOf(text).nanos / 1_000_000_000n)
}

/** Moves between members with one storage: nothing is copied. */
async function handOver(
  parties: VolumeParties,
  { rounds, image }: MoveContext,
  before: VolumeMoveStatus,
  claim: Claim,
): Promise<Outcome> {
  const { move } = parties
  const { name } = move.metadata
  const status = { ...before, rounds: 0 }
  const old = await claimInSource(parties)
  const users = await usersOf(parties, move.spec.claim)
  const { inSource, isAwaited } = await workloadsOf(parties, claim)
  if (users.length > 0 || inSource.length > 0 || !isAwaited) {
    if (lockOf(claim)?.move === name) await unlock(parties, claim)
    await checkShared(parties, old)
    if (move.spec.way === 'Snapshot') await snapshotClassOf(parties, old)
    return await ready(parties, status, { state: rounds.stateOf(name), claim, old, isAwaited })
  }
  if (isOwned(old))
    throw new Obstacle('ClaimOwned', 'the claim in the old member cluster would be deleted with its owner')
  if (lockOf(claim)?.move !== name) {
    await checkShared(parties, old)
    await lock(parties, claim)
    return { status: { ...status, phase: 'Finishing', stoppedTime: timestamp(systemClock.now()) }, againSeconds: 0.05 }
  }
  await refuseAttached(parties, old)
  if (move.spec.way === 'Shared') {
    await shareVolume(parties, old)
    return { status: { ...status, phase: 'Binding', volumeName: sharedVolumeName(move) }, againSeconds: 0.05 }
  }
  await restoreSnapshot(parties, { old, upstream: claim })
  // A volume that is made when a pod needs it gets one.
  const credentials = await rounds.credentialsOf(name)
  const isBlock = old.spec?.volumeMode === 'Block'
  await ensureMover(parties, { image, credentials, isBlock, role: 'target', claim: newClaimName(move) })
  return { status: { ...status, phase: 'Binding' }, againSeconds: 0.05 }
}

/** The member keeps a snapshot of the volume: the claim gets a new one from it. */
async function fill(
  parties: VolumeParties,
  context: MoveContext,
  before: VolumeMoveStatus,
  claim: Claim,
): Promise<Outcome> {
  const { move, target } = parties
  const { name } = move.metadata
  const { snapshot, storageClass } = move.spec
  if (snapshot === undefined) throw new Obstacle('SnapshotGone', 'the move names no snapshot', { againSeconds: 30 })
  // Once the move is over, src/operator/placement makes the claim like a new one.
  if (mayBeginEmpty(claim)) return await undo(parties, context, before)
  const { rounds, places, image } = context
  const state = rounds.stateOf(name)
  const wait = places.take(candidateOf(move, state))
  if (wait !== undefined) {
    await rest(parties, state)
    return queued(before, wait)
  }
  state.wellAt ??= systemClock.now()
  state.isResting = false
  if (lockOf(claim)?.move !== name && (await goesOn(parties, claim))) return await undo(parties, context, before)
  await lock(parties, claim)
  const className = storageClass ?? claim.spec?.storageClassName ?? ''
  await requireDriver(parties, className, snapshot.driver)
  const dataSource = await importSnapshot(parties, snapshot)
  const storage = String(snapshot.bytes ?? 0)
  const old: Claim = {
    ...claim,
    spec: { ...claim.spec, storageClassName: className, dataSource },
    ...(snapshot.bytes !== undefined && { status: { capacity: { storage } } }),
  }
  await ensureNewClaim(parties, { old, upstream: claim })
  // A volume that is made when a pod needs it gets one.
  const credentials = await rounds.credentialsOf(name)
  const isBlock = claim.spec?.volumeMode === 'Block'
  await ensureMover(parties, { image, credentials, isBlock, role: 'target', claim: newClaimName(move) })
  const summary = `made from snapshot "${snapshot.name}" in member cluster "${target.name}"`
  return { status: { ...before, rounds: 0, phase: 'Binding', summary }, againSeconds: 0.05 }
}

function roundWish({ spec }: DeepReadonly<VolumeMove>, mode: RoundMode) {
  return { mode, ...(spec.bandwidth !== undefined && { bandwidth: spec.bandwidth }) }
}

/** Whether more rounds beside the application would not make the last one much shorter. */
function isShort({ seconds }: MoveState, { rounds = 0, lastRound }: VolumeMoveStatus): boolean {
  if (lastRound === undefined) return false
  const [before] = seconds.length > 1 ? seconds : []
  const converges = before === undefined || lastRound.seconds < before * 0.7
  return lastRound.seconds <= shortSeconds || rounds >= maxRounds || (rounds >= 3 && !converges)
}

/** The status after the round that has ended; the error of the round, if it failed. */
function takeEnded(
  state: MoveState,
  status: VolumeMoveStatus,
): { readonly status: VolumeMoveStatus; readonly isVerified: boolean; readonly error?: Error } {
  const { ended, survey, connection } = state
  const base = {
    ...status,
    ...(survey && { notKept: notKeptTexts(survey), ...(status.bytes === undefined && { bytes: survey.bytes }) }),
    ...(connection && { connection }),
  }
  if (ended === undefined) return { status: base, isVerified: false }
  delete state.ended
  if ('error' in ended) {
    state.failures += 1
    return { status: base, isVerified: false, error: roundError(ended.error, state.failures) }
  }
  state.failures = 0
  return { status: afterRound(state, base, ended.result), isVerified: ended.result.verified === true }
}

function afterRound(state: MoveState, status: VolumeMoveStatus, result: RoundResult): VolumeMoveStatus {
  const seconds = result.durationMs / 1000
  state.seconds.push(seconds)
  if (state.seconds.length > 2) state.seconds.shift()
  if (seconds > 0) state.readRate = Math.max(state.readRate ?? 0, result.bytes / seconds)
  const { doneBytes: _d, rate: _r, ...kept } = status
  return {
    ...kept,
    rounds: (status.rounds ?? 0) + 1,
    bytes: result.bytes,
    entries: result.entries,
    sentBytes: (status.sentBytes ?? 0) + result.bytesOnWire,
    notKept: notKeptTexts(result),
    lastRound: { completionTime: timestamp(systemClock.now()), seconds, changedBytes: result.bytesChanged },
    ...(result.digest !== undefined && { digest: result.digest }),
  }
}

function roundError(error: unknown, failures: number): Error {
  if (!(error instanceof MoverError)) return error instanceof Error ? error : new Error(String(error))
  const where = error.path ? ` (at ${error.path})` : ''
  const againSeconds = Math.min(60, 2 ** failures)
  return new Obstacle(error.code, `${error.message}${where}: ${error.remedy}`, { againSeconds })
}

function running(state: MoveState, status: VolumeMoveStatus): Outcome {
  const { progress } = state.round ?? {}
  const now: VolumeMoveStatus = {
    ...status,
    ...(progress && {
      doneBytes: progress.bytesDone,
      rate: Math.round(progress.bytesPerSecond),
      ...(progress.bytesTotal !== undefined && { bytes: progress.bytesTotal }),
    }),
  }
  return { status: told(state, now, progressText(now)), againSeconds: lookSeconds }
}

/** Seconds until the next look at a move that waits for a person: the longer it has waited, the later. */
function patienceSeconds({ status }: DeepReadonly<VolumeMove>): number {
  const before = status?.conditions?.find(({ type }) => type === 'Progressing')
  if (before?.status !== 'False') return lookSeconds
  const waited = (systemClock.now() - Date.parse(before.lastTransitionTime)) / 1000
  return Math.min(30, Math.max(lookSeconds, waited / 20))
}

/** How often the line for people changes, milliseconds: workloads repeat it. */
const tellMs = 10_000

function told(state: MoveState, status: VolumeMoveStatus, summary: string): VolumeMoveStatus {
  const now = systemClock.now()
  if (status.summary !== undefined && now - (state.toldAt ?? 0) < tellMs) return status
  state.toldAt = now
  return { ...status, summary }
}

interface Readiness {
  readonly state: MoveState
  readonly claim: Claim
  readonly old: Claim
  /** Whether a workload waits for the data in the new member. */
  readonly isAwaited: boolean
}

/** The application may stop, if the tenant has agreed and the StatefulSet keeps its claims. */
async function ready(
  { move, source }: VolumeParties,
  before: VolumeMoveStatus,
  { state, claim, old, isAwaited }: Readiness,
): Promise<Outcome> {
  const expectedDowntimeSeconds = expectedDowntime(before, state)
  const status = { ...before, expectedDowntimeSeconds }
  const downtime = secondsText(expectedDowntimeSeconds)
  if (!isAwaited && move.spec.way === 'Replicate') {
    const text = `member cluster "${move.spec.to}" has a copy of ${status.lastRound?.completionTime ?? 'nothing yet'}`
    const phase = move.spec.requireConsent === true ? 'Copying' : 'Ready'
    // A copy that nobody waits for is looked at rarely: each look asks for all workloads of the namespace.
    const { everySeconds = 0 } = move.spec
    return { status: told(state, { ...status, phase }, text), againSeconds: Math.max(lookSeconds, everySeconds / 4) }
  }
  if (move.spec.requireConsent === true && !isConsented(claim, move.spec.to))
    return {
      status: told(state, { ...status, phase: 'Copying' }, `copied; about ${downtime} without the application`),
      obstacle: {
        reason: 'ConsentRequired',
        message: `the application would be stopped for about ${downtime}; to agree: kubectl annotate persistentvolumeclaim ${move.spec.claim} --namespace ${move.spec.namespace} kcp.dev/volume-consent=${move.spec.to}`,
      },
      againSeconds: patienceSeconds(move),
    }
  if (isOwned(old))
    return {
      status: { ...status, phase: 'Copying' },
      obstacle: {
        reason: 'ClaimOwned',
        message: `in member cluster "${source.name}", the claim would be deleted with its StatefulSet or pod; it waits until it would not`,
      },
      againSeconds: lookSeconds,
    }
  const isNew = status.phase !== 'Ready'
  const summary = `copied; about ${downtime} without the application`
  return {
    status: isNew ? { ...status, phase: 'Ready', summary } : told(state, { ...status, phase: 'Ready' }, summary),
    againSeconds: lookSeconds,
  }
}

interface LastRound {
  readonly rounds: Rounds
  readonly ways: Ways
  readonly state: MoveState
  readonly status: VolumeMoveStatus
  readonly old: Claim
  readonly claim: Claim
}

/** The application has stopped: locks the claim, makes sure that nobody can write, and compares all data. */
async function last(parties: VolumeParties, { rounds, ways, state, status, old, claim }: LastRound): Promise<Outcome> {
  const { move } = parties
  const { name } = move.metadata
  if (isOwned(old))
    throw new Obstacle('ClaimOwned', 'the claim in the old member cluster would be deleted with its owner')
  if (lockOf(claim)?.move !== name) {
    // A round beside the application says nothing about the end.
    state.round?.end()
    await lock(parties, claim)
    return { status: { ...status, phase: 'Finishing', stoppedTime: timestamp(systemClock.now()) }, againSeconds: 0.05 }
  }
  await refuseAttached(parties, old)
  if (state.round?.mode === 'copy') {
    state.round.end()
    return { status, againSeconds: 0.2 }
  }
  if (state.round === undefined) rounds.start(name, roundWish(move, 'final'), ways)
  const found = running(state, { ...status, phase: 'Finishing' })
  const summary =
    status.phase === 'Finishing' && found.status.summary?.startsWith('last') ? found.status.summary : undefined
  const left = found.status.bytes === undefined ? '' : ` of ${bytesText(found.status.bytes)}`
  return {
    ...found,
    status: { ...found.status, summary: summary ?? `last round: compares all data${left}` },
    againSeconds: 1,
  }
}

/** Throws Obstacle while the volume is attached to a node without a mover of ours. */
async function refuseAttached(parties: VolumeParties, old: Claim): Promise<void> {
  const movers = await moversIn(parties, 'source')
  const own = movers.map((pod) => (pod['spec'] as { nodeName?: string } | undefined)?.nodeName ?? '')
  const nodes = await attachedTo(parties, old.spec?.volumeName ?? '', new Set(own)).catch(missingRight)
  if (nodes.length > 0)
    throw new Obstacle(
      'StillAttached',
      `the old volume is still attached to node "${nodes.join('", "')}", where something may write`,
      {
        againSeconds: 1,
      },
    )
}

/** Gives the new volume to the claim: from here there is no way back but another move. */
async function bind(
  parties: VolumeParties,
  context: MoveContext,
  status: VolumeMoveStatus,
  claim: Claim,
): Promise<Outcome> {
  const { move, target, signal } = parties
  context.rounds.forget(move.metadata.name)
  const isUnfilled = move.spec.way === 'Restore' && volumeSourceOf(claim) !== undefined
  const hasArrived = memberOfClaim(claim) === move.spec.to && !isUnfilled
  if (target.isGone && hasArrived) {
    const movedTime = status.movedTime ?? timestamp(systemClock.now())
    return { status: { ...status, movedTime, phase: 'Moved' }, againSeconds: 0.05 }
  }
  // Without the old member, the new volume is all that can be reached of the data. A restore has no old volume.
  const mayStay = target.isEnding && !context.isSourceLost && !hasArrived && move.spec.way !== 'Restore'
  if (target.isGone || mayStay) return await takeBack(parties, context, status)
  if (!hasArrived) {
    // The new volume has all data, and nothing writes in a member that is fenced or gone: the claim arrives without it.
    if (context.isSourceLost && isComplete(move, status) && status.lostAfter === undefined) {
      const lostAfter = status.lastRound?.completionTime ?? status.stoppedTime ?? timestamp(systemClock.now())
      return { status: { ...status, lostAfter }, againSeconds: 0.05 }
    }
    const users = status.lostAfter === undefined && !isUnfilled ? await usersOf(parties, move.spec.claim) : []
    // Nothing is in the way of a new comparison yet.
    const isComparable = status.digest !== undefined && status.volumeName === undefined
    if (users.length > 0 && isComparable) {
      const { digest: _d, ...rest } = status
      return { status: { ...rest, phase: 'Finishing' }, againSeconds: 0.2 }
    }
    if (users.length > 0) throw usedAgain(parties, users)
    const volumeName = status.volumeName ?? (await newVolumeName(parties))
    if (status.volumeName === undefined) return { status: { ...status, volumeName }, againSeconds: 0.05 }
    await requireRoom(parties, volumeName, claim)
    if (move.spec.way !== 'Shared') await protect(parties, volumeName)
    const isSourceLost = status.lostAfter !== undefined
    const areGone = [await removeMovers(parties, 'target'), isSourceLost || (await removeMovers(parties, 'source'))]
    if (areGone.includes(false)) return { status, againSeconds: 0.3 }
    if (!(await deleteKept(parties, target))) return { status, againSeconds: 0.5 }
    if (!(await removeNewClaim(parties))) return { status, againSeconds: 0.3 }
    if (move.spec.way !== 'Shared') await reserve(parties, volumeName)
    if (!isSourceLost && !isUnfilled) await keep(parties, systemClock.now() + move.spec.retainSeconds * 1000)
    await arrive(parties, claim, volumeName)
  }
  signal.throwIfAborted()
  const isBound = await release(parties, status.volumeName ?? '')
  const reached = { ...parties, isSourceLost: context.isSourceLost }
  if (hasSnapshots(move) && !(await removeSnapshots(reached))) return { status, againSeconds: 0.5 }
  const movedTime = status.movedTime ?? timestamp(systemClock.now())
  if (!isBound)
    return {
      status: { ...status, movedTime, summary: `its claim is bound in member cluster "${target.name}"` },
      againSeconds: 0.5,
    }
  const summary = move.spec.way === 'Restore' ? (status.summary ?? '') : movedText(move, status, movedTime)
  return { status: { ...status, movedTime, phase: 'Moved', summary }, againSeconds: 1 }
}

/**
 * The claim has not arrived in its new member, which an admin removes. Nothing has written to the old volume since the
 * data was compared, so it is the volume of the claim as before.
 */
async function takeBack(parties: VolumeParties, context: MoveContext, status: VolumeMoveStatus): Promise<Outcome> {
  const { move, target } = parties
  if (!context.isSourceLost) await keepNoMore(parties)
  const hasNewVolume = status.volumeName !== undefined && move.spec.way !== 'Shared'
  if (hasNewVolume && !target.isGone) await abandonVolume(parties, status.volumeName ?? '')
  return { ...(await undo(parties, context, { ...status, phase: 'Cancelled' })), obstacle: removed(target) }
}

/** A syncer that had not heard of the lock may have made a pod after the data was compared. */
function usedAgain({ source }: VolumeParties, users: Awaited<ReturnType<typeof usersOf>>): Obstacle {
  const names = users.map(({ metadata }) => `"${metadata.name ?? ''}"`).join(', ')
  return new Obstacle(
    'StillAttached',
    `in member cluster "${source.name}", pod ${names} uses the old volume: what it writes is not in the new one`,
    { againSeconds: 1 },
  )
}

/** Whether the new volume has all that was written: all data was compared, or the storage of both members has it. */
function isComplete({ spec: { way } }: DeepReadonly<VolumeMove>, { digest }: VolumeMoveStatus): boolean {
  return digest !== undefined || way === 'Snapshot' || way === 'Shared'
}

function movedText(move: DeepReadonly<VolumeMove>, status: VolumeMoveStatus, movedTime: string): string {
  const { bytes = 0, stoppedTime, lostAfter } = status
  if (lostAfter !== undefined && !isComplete(move, status))
    return `goes on with the copy of ${lostAfter}; what was written later is in the old member cluster`
  const seconds = (Date.parse(movedTime) - Date.parse(stoppedTime ?? movedTime)) / 1000
  return `${bytesText(bytes)} moved in ${secondsText(seconds)} without the application`
}

/** Keeps the old volume for the time that the Placement says, or until the tenant deletes the claim. */
async function finish(
  parties: VolumeParties,
  { isSourceLost }: MoveContext,
  status: VolumeMoveStatus,
  claim: Claim | undefined,
): Promise<Outcome> {
  const { move, source, target } = parties
  if (move.spec.way === 'Restore') return { status, isOver: true }
  const retainMs = move.spec.retainSeconds * 1000
  if (source.isGone) return { status, isOver: true }
  const isEnding = move.metadata.deletionTimestamp !== undefined
  // The old volume may be all that is left of the data.
  if (target.isGone && claim !== undefined && memberOfClaim(claim) === move.spec.to && !isEnding)
    return { status, obstacle: lastCopy(move), againSeconds: 60 }
  if (isSourceLost) return { status, againSeconds: 30 }
  // A member that returns after its loss may have data that the new volume lacks. A claim that has come back to this
  // member has its present volume there.
  const isOld = status.lostAfter !== undefined && (claim === undefined || memberOfClaim(claim) !== move.spec.from)
  const returned = isOld ? await keep(parties, systemClock.now() + retainMs) : undefined
  const untilMs = returned ?? Date.parse(status.movedTime ?? '') + retainMs
  const waitMs = untilMs - systemClock.now()
  if (claim !== undefined && waitMs > 0 && !isEnding)
    return { status, againSeconds: Math.min(60, Math.max(1, waitMs / 1000)) }
  // A mover of a member that was lost could not be removed before; with it, the claim could not be deleted.
  const isWithoutMovers = status.lostAfter === undefined || (await removeMovers(parties, 'source'))
  // Nor could its VolumeSnapshot.
  const hasNone = status.lostAfter === undefined || !hasSnapshots(move) || (await removeSnapshots(parties))
  if (!isWithoutMovers || !hasNone || !(await deleteKept(parties, source))) return { status, againSeconds: 1 }
  if (move.spec.way === 'Shared') await forgetShared(parties)
  return { status, isOver: true }
}

function lastCopy({ spec: { from, to } }: VolumeParties['move']): NonNullable<Outcome['obstacle']> {
  const message = `member cluster "${to}", which has the data, is not registered any more: member cluster "${from}" keeps the old volume until the claim is deleted`
  return { reason: 'MemberRemoved', message }
}

/** The old member is lost for now: goes on with the copy, if the tenant accepts that later writes are lost. */
async function failOver(
  parties: VolumeParties,
  { rounds }: MoveContext,
  status: VolumeMoveStatus,
  claim: Claim,
): Promise<Outcome> {
  const { move } = parties
  const asOf = status.lastRound?.completionTime
  const { isAwaited } = await workloadsOf(parties, claim)
  const isPossible = move.spec.way === 'Replicate' && asOf !== undefined
  if (!isPossible || !isAwaited || !isLossAccepted(claim, move.spec.to)) {
    const { from, to } = move.spec
    const message = `member cluster "${from}" does not answer; ${isPossible ? `member cluster "${to}" has a copy of ${asOf}` : 'there is no complete copy of the volume'}`
    return { status, obstacle: { reason: 'Unreachable', message }, againSeconds: 5 }
  }
  rounds.forget(move.metadata.name)
  await lock(parties, claim)
  const { digest: _d, ...rest } = status
  const stoppedTime = timestamp(systemClock.now())
  return { status: { ...rest, phase: 'Binding', lostAfter: asOf, stoppedTime }, againSeconds: 0.05 }
}

/** Whether the move makes VolumeSnapshots in members. */
function hasSnapshots({ spec }: DeepReadonly<VolumeMove>): boolean {
  return spec.way === 'Snapshot' || spec.way === 'Restore'
}

/** Lets both members delete the volume of a claim that is gone. */
async function discard(parties: VolumeParties, { volumeName }: VolumeMoveStatus): Promise<void> {
  const { move, source, target } = parties
  if (volumeName !== undefined && !target.isGone) await abandonVolume(parties, volumeName)
  if (source.isGone || move.spec.way === 'Restore') return
  if (!(await deleteKept(parties, source)))
    throw new Obstacle('Working', 'the old claim is deleted', { againSeconds: 0.5 })
  if (move.spec.way === 'Shared') await forgetShared(parties)
}

/**
 * Removes everything that the move has made, where the member is not gone, and its lock. The claim stays where it is. A
 * copy that was kept up to date outlives the member with the data.
 */
export async function undo(
  parties: VolumeParties,
  { rounds }: MoveContext,
  status: VolumeMoveStatus,
): Promise<Outcome> {
  const { move, source, target } = parties
  const { way } = move.spec
  rounds.forget(move.metadata.name)
  const claim = await claimUpstream(parties)
  const isLast = source.isGone && claim !== undefined && way === 'Replicate' && status.lastRound !== undefined
  const left: boolean[] = []
  if (!source.isGone) left.push(await removeMovers(parties, 'source'))
  if (!target.isGone) left.push(await removeMovers(parties, 'target'))
  if (!target.isGone && !isLast) left.push(await removeNewClaim(parties))
  if (hasSnapshots(move)) left.push(await removeSnapshots(parties))
  if (way === 'Shared' && status.phase !== 'Binding') await unshare(parties)
  if (claim !== undefined) await unlock(parties, claim)
  const phase: VolumeMovePhase = 'Cancelled'
  if (left.includes(false)) return { status: { ...status, phase }, againSeconds: 0.5 }
  return { status: { ...status, phase }, isOver: true }
}

/** The most characters of an obstacle's message. */
const maxMessage = 2048

/** The obstacle in an error. Members and movers choose many of these words, so they are bounded. */
export function obstacleOf(error: unknown): { reason: string; message: string; againSeconds: number } {
  const isKnown = error instanceof Obstacle || isStatusError(error)
  const reason = isKnown && /^[A-Za-z]\w{0,99}$/.test(error.reason) ? error.reason : 'Failed'
  const message = (isKnown ? error.message : String(error)).slice(0, maxMessage)
  const againSeconds = error instanceof Obstacle ? error.againSeconds : isKnown ? 5 : 10
  return { reason, message, againSeconds }
}
