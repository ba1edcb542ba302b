// The next decision for one workload: where it should run, and the next step of the move there. Pure.
import { arrivingStates, lostAfterMs, type PlacedCopy, type PlacedOn } from '#crds/index.ts'
import { decide, failoverInMs, move, type Choice, type Decision, type Strategy } from '#placement/index.ts'
import type { Observed } from './observe.ts'

export interface PlanOptions {
  readonly nowMs: number
  /** How long a copy keeps running after it takes no new traffic. */
  readonly drainSeconds: number
  /** How long a copy must serve before another one drains. */
  readonly soakSeconds: number
  /** How long a member that a workload has left forwards requests. Default 60. */
  readonly forwardSeconds?: number
}

export interface Plan {
  readonly decision: Decision
  /** The decision to write on the workload; `observed.placedOn` itself if nothing changes. */
  readonly placedOn: PlacedOn
  /** Whether the reasons why copies are held are written on the workload. They are not where there are no members. */
  readonly isWritten: boolean
  /** Why the workload has no pods, because its logical cluster is asleep; absent: it is awake. */
  readonly asleep?: string
  /** In how many seconds the passing of time alone may change the plan; absent: it does not. */
  readonly requeueAfterSeconds?: number
}

export function plan(observed: Observed, options: PlanOptions): Plan {
  const { nowMs } = options
  const decision = decide(observed.choice)
  const isWritten = observed.choice.candidates.length > 0
  if (!isWritten && Object.keys(observed.placedOn).length === 0)
    return { decision, placedOn: observed.placedOn, isWritten }
  const { scale, moveTimes: times } = observed.choice
  const {
    placedOn: moved,
    requeueAfterMs,
    stalled,
  } = move({
    now: nowMs,
    placedOn: observed.placedOn,
    decision,
    strategy: strategyFor(observed, decision),
    ...(scale && { scale }),
    seen: observed.seen,
    ...(observed.volumes && { volumes: observed.volumes }),
    mayDrain: (member) => observed.networkOf(member) !== 'None' || siblingsServeElsewhere(observed, member),
    drainSeconds: times?.drainSeconds ?? options.drainSeconds,
    soakSeconds: times?.soakSeconds ?? options.soakSeconds,
    forwardSeconds: times?.forwardSeconds ?? options.forwardSeconds ?? 60,
    forwards: (member) => observed.networkOf(member) !== 'None',
  })
  const { choice } = observed
  const placedOn = withSleep(withDrift(moved, choice.reportsDrift), choice.asleep !== undefined)
  const passingMs = passesForMs(observed.placedOn, placedOn, nowMs)
  const waits = [requeueAfterMs, passingMs, nextFailoverMs(choice), nextLostMs(choice), overMs(choice, nowMs)].filter(
    (ms) => ms !== undefined,
  )
  const requeueAfter = waits.length === 0 ? {} : { requeueAfterSeconds: Math.min(...waits) / 1000 }
  return {
    decision: { ...decision, held: [...decision.held, ...stalled, ...(observed.volumes?.problems ?? [])] },
    placedOn: passingMs === undefined ? placedOn : observed.placedOn,
    isWritten,
    ...(choice.asleep !== undefined && { asleep: choice.asleep }),
    ...requeueAfter,
  }
}

/** The copies with what becomes of changes made in members; the same object if nothing changes. */
function withDrift(placedOn: PlacedOn, isReported = false): PlacedOn {
  if (Object.values(placedOn).every((copy) => (copy.drift === 'Report') === isReported)) return placedOn
  return Object.fromEntries(
    Object.entries(placedOn).map(([member, { drift: _drift, ...copy }]) => [
      member,
      isReported ? { ...copy, drift: 'Report' as const } : copy,
    ]),
  )
}

/** The copies with the note that they are asleep, or without it; the same object if nothing changes. */
function withSleep(placedOn: PlacedOn, isAsleep: boolean): PlacedOn {
  if (Object.values(placedOn).every((copy) => (copy.asleep ?? false) === isAsleep)) return placedOn
  return Object.fromEntries(
    Object.entries(placedOn).map(([member, { asleep: _asleep, ...copy }]) => [
      member,
      isAsleep ? { ...copy, asleep: true as const } : copy,
    ]),
  )
}

/** How long a copy may be on its way in before the states that it passes are written. */
const wayInMs = 3000

/**
 * For how many milliseconds a step need not be written, because it changes only states of copies on their way in:
 * nothing else waits for these states, and a copy usually serves within moments, which one write then tells. Undefined:
 * the step is written now.
 */
function passesForMs(before: PlacedOn, after: PlacedOn, nowMs: number): number | undefined {
  if (after === before || Object.keys(after).length !== Object.keys(before).length) return undefined
  let leftMs: number | undefined
  for (const [member, copy] of Object.entries(after)) {
    const was = before[member]
    if (was === copy) continue
    if (was === undefined || !arrivingStates.includes(was.state) || !arrivingStates.includes(copy.state))
      return undefined
    if (partOf(was) !== partOf(copy)) return undefined
    leftMs = Math.min(leftMs ?? Infinity, Date.parse(was.since ?? '') + wayInMs - nowMs)
  }
  return leftMs !== undefined && leftMs > 0 ? leftMs : undefined
}

/** All that a copy says besides its state and what it waits for. */
function partOf({ state: _state, since: _since, wait: _wait, ...part }: PlacedCopy): string {
  return JSON.stringify(part)
}

/** Pods of a StatefulSet are in two members at a time only where they reach each other by their own addresses. */
function strategyFor({ choice, placedOn, networkOf, volumes }: Observed, { wanted }: Decision): Strategy {
  const { volumesIn, scale } = choice
  const names = wanted.kind === 'members' ? wanted.names : []
  const isFlat = [...Object.keys(placedOn), ...names].every((name) => networkOf(name) === 'Flat')
  const byOrdinal = scale?.hasOrdinals === true && isFlat ? 'ordinalByOrdinal' : 'breakBeforeMake'
  // Data that pods still write cannot be complete in another member.
  const isElsewhere = names.some((name) => !volumesIn.includes(name)) || volumesIn.some((name) => !names.includes(name))
  if (volumesIn.length > 0 && wanted.kind === 'members' && isElsewhere) {
    // A single pod stops as a whole. Pods of a logical cluster that is asleep do not serve, so none waits for another.
    const isMoving = Object.values(placedOn).some(({ start }) => start !== undefined)
    const hasOrder = (isMoving || (scale?.replicas ?? 1) > 1) && choice.asleep === undefined
    return volumes?.byOrdinal !== undefined && hasOrder ? byOrdinal : 'breakBeforeMake'
  }
  return choice.move === 'makeBeforeBreak' ? 'makeBeforeBreak' : byOrdinal
}

/** In how many milliseconds a move for balance is withdrawn; undefined if none will be. */
function overMs({ rebalancing }: Choice, nowMs: number): number | undefined {
  const waitMs = (rebalancing?.overAtMs ?? 0) - nowMs
  return waitMs > 0 ? waitMs : undefined
}

/** In how many milliseconds the next member of the workload that does not answer is lost; undefined if none will be. */
function nextLostMs({ candidates, current }: Choice): number | undefined {
  const waits = candidates
    .filter(({ name }) => current.includes(name))
    .map(({ unreachableMs }) => (unreachableMs === undefined ? 0 : lostAfterMs - unreachableMs))
    .filter((ms) => ms > 0)
  return waits.length === 0 ? undefined : Math.min(...waits)
}

/** In how many milliseconds the workload leaves a member that goes on not to answer; undefined if it leaves none. */
function nextFailoverMs({ candidates, current, demand }: Choice): number | undefined {
  const waits = candidates
    .filter(({ name }) => current.includes(name))
    .map((candidate) => failoverInMs(candidate, demand))
    .filter((ms) => ms !== undefined)
    .filter((ms) => ms > 0)
  return waits.length === 0 ? undefined : Math.min(...waits)
}

/**
 * Where pods do not reach Services of other members, a namespace moves as a whole: no workload drains on a
 * member before every workload that leaves this member serves on another one.
 */
function siblingsServeElsewhere({ siblings }: Observed, member: string): boolean {
  for (const { placedOn, choice } of siblings()) {
    const copy = placedOn[member]
    if (copy === undefined || ['Held', 'Draining', 'Terminating', 'Forwarding'].includes(copy.state)) continue
    if (Object.entries(placedOn).some(([name, { state }]) => name !== member && state === 'Serving')) continue
    // This check is the last one, because a moving namespace of n workloads makes it about n * n times.
    const theirs = choice()
    const wanted = theirs && decide(theirs).wanted
    const staysOrEnds = wanted?.kind === 'none' || (wanted?.kind === 'members' && wanted.names.includes(member))
    if (!staysOrEnds) return false
  }
  return true
}
