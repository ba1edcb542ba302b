// Balances members from time to time: looks over all workloads for those that should move from a fuller to an emptier
// member, and for divided ones whose division is out of date, and enqueues them. Their reconcile decides and writes as
// for any other move. Nothing is looked at while no Placement of an admin turns balancing on.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { addAmounts, type Amounts, type Quantity } from '#apimachinery/quantity/index.ts'
import { type Clock, sleep, yieldEvery } from '#async/index.ts'
import { type DeepReadonly, namespaceKeyOf } from '#client/index.ts'
import {
  isConditionTrue,
  memberState,
  newestMove,
  placedOn,
  requestsOf,
  type MemberCluster,
  type Placement,
  type ServiceNetwork,
  areJoined,
} from '#crds/index.ts'
import {
  decide,
  limitsOf,
  mayRebalanceTo,
  rebalanceMoves,
  unreachableSince,
  whyNotRebalanced,
  type RebalanceAnswer,
  type RebalanceMember,
  type RebalanceProposal,
  type RebalanceRule,
  type RebalanceUnit,
  type Rebalancing,
} from '#placement/index.ts'
import type { Logger } from '#telemetry/index.ts'
import { observe, type Observed } from './observe.ts'
import type { PlacementInputs } from './placement-inputs.ts'
import { parseWorkloadKey } from './workload-key.ts'

interface RebalancingOptions {
  readonly log: Logger
  readonly everyMs: number
  readonly clock: Clock
}

/** Runs until the signal aborts, then resolves. */
export async function runRebalancing(
  inputs: PlacementInputs,
  enqueue: (key: string) => void,
  { log, everyMs, clock }: RebalancingOptions,
  signal: AbortSignal,
): Promise<void> {
  const hasEnded = (): boolean => signal.aborted
  while (!hasEnded()) {
    try {
      await sleep(everyMs, signal, { unref: true })
      await rebalance(inputs, enqueue, { log, nowMs: clock.now() }, signal)
    } catch (error) {
      if (!hasEnded()) log.error('could not balance the members', { error })
    }
  }
}

async function rebalance(
  inputs: PlacementInputs,
  enqueue: (key: string) => void,
  { log, nowMs }: { readonly log: Logger; readonly nowMs: number },
  signal: AbortSignal,
): Promise<void> {
  // Workloads of the last search are not reconciled yet.
  if (inputs.rebalancing.size + inputs.dividedAgain.size > 0) return
  const found = ({ key, rebalancing, message }: Found): void => {
    log.info('balances members', { workload: key, message })
    if (rebalancing === undefined) inputs.dividedAgain.set(key, message)
    else inputs.rebalancing.set(key, rebalancing)
    enqueue(key)
  }
  await findRebalances(sourceOf(inputs, nowMs), found, signal)
}

function sourceOf(inputs: PlacementInputs, nowMs: number): RebalanceSource {
  const workloadOf = (key: string): ReturnType<RebalanceSource['workload']> => {
    const ref = parseWorkloadKey(key)
    return ref && inputs.workload(ref)
  }
  return {
    adminPlacements: () => inputs.adminPlacements.store.list(),
    members: () => inputs.members.store.list(),
    isFailoverFrozen: inputs.isFailoverFrozen,
    networkOf: (member) => inputs.networkOf(member),
    requestedIn: (member) => inputs.usage.requestedIn(member, { without: '' }),
    workloadKeysIn: (member) => inputs.workloadKeysIn(member),
    workload: workloadOf,
    observe: (key) => {
      const [ref, workload] = [parseWorkloadKey(key), workloadOf(key)]
      return ref && workload && observe(ref, workload, inputs, nowMs)
    },
    budgetsOf: (key) => {
      const ref = parseWorkloadKey(key)
      return ref === undefined ? [] : inputs.budgetsIn(namespaceKeyOf(ref.objectKey))
    },
    nowMs,
  }
}

type CachedObject = DeepReadonly<KubeObject>

/** The input of the search, from PlacementInputs or from a test. */
interface RebalanceSource {
  readonly adminPlacements: () => Iterable<DeepReadonly<Placement>>
  readonly members: () => Iterable<DeepReadonly<MemberCluster>>
  readonly isFailoverFrozen: boolean
  readonly networkOf: (member: string) => ServiceNetwork
  readonly requestedIn: (member: string) => Amounts
  /** Keys of the workloads with something in the member. */
  readonly workloadKeysIn: (member: string) => Iterable<string>
  readonly workload: (key: string) => CachedObject | undefined
  readonly observe: (key: string) => RebalanceObserved | undefined
  /** PodDisruptionBudgets of the workload's namespace. */
  readonly budgetsOf: (key: string) => Iterable<CachedObject>
  readonly nowMs: number
}

/** A workload to reconcile for balance. */
interface Found {
  readonly key: string
  /** Absent: it is divided again. */
  readonly rebalancing?: Rebalancing
  /** Why, for people. */
  readonly message: string
}

type RebalanceObserved = Pick<Observed, 'choice' | 'placedOn'>

interface Unit extends RebalanceUnit {
  readonly workload: CachedObject
}

/** Calls `found` with each workload at once. */
export async function findRebalances(
  source: RebalanceSource,
  found: (found: Found) => void,
  signal: AbortSignal,
): Promise<void> {
  const active = [...source.adminPlacements()].flatMap(({ metadata, spec }) => {
    const { mode = 'Move', maxMoves = 2, thresholdPercent = 20 } = spec?.rebalance ?? { mode: 'Never' as const }
    return mode === 'Move' ? [{ placement: metadata.name, maxMoves, thresholdPercent }] : []
  })
  // While many members do not answer, their known limits and requests are out of date.
  if (active.length === 0 || source.isFailoverFrozen) return
  const pause = yieldEvery(10, signal)
  const { units, divided, leaving, underway } = await survey(source, pause)
  const search = new Search(source, underway, found)
  for (const key of divided) {
    search.divideAgain(key)
    await pause()
  }
  const minGain = Math.min(...active.map(({ thresholdPercent }) => thresholdPercent))
  const moves = rebalanceMoves(membersOf(source, leaving), units, minGain)
  for (let next = moves.next('stays'); next.done !== true && active.some((rule) => search.hasTurn(rule));) {
    const response = search.answer(next.value)
    await pause()
    next = moves.next(response)
  }
}

type Sums = Map<string, Map<string, Quantity>>

interface Survey {
  /** Workloads with one copy, which serves. */
  readonly units: Unit[]
  /** Keys of workloads whose members have a number of replicas each. */
  readonly divided: Set<string>
  /** By member: the requests of copies that are leaving. */
  readonly leaving: Sums
  /** By Placement: how many workloads move for balance. */
  readonly underway: Map<string, number>
}

async function survey(source: RebalanceSource, pause: () => Promise<void> | undefined): Promise<Survey> {
  const result: Survey = { units: [], divided: new Set(), leaving: new Map(), underway: new Map() }
  const moving = new Set<string>()
  for (const { metadata } of source.members()) {
    for (const key of source.workloadKeysIn(metadata.name)) {
      await pause()
      const workload = source.workload(key)
      if (workload === undefined || workload.metadata.deletionTimestamp !== undefined) continue
      const copies = placedOn(workload as KubeObject)
      const copy = copies[metadata.name]
      if (copy?.replicas !== undefined) result.divided.add(key)
      else if (Object.keys(copies).length > 1) moving.add(key)
      else if (copy?.state === 'Serving')
        result.units.push({ key, member: metadata.name, requests: requestsOf(workload), workload })
    }
  }
  for (const key of moving) {
    await pause()
    countMoving(key, source, result)
  }
  return result
}

/**
 * Counts the copies of a workload that are leaving, so that their room counts as free: otherwise a move would seem to
 * have changed nothing, and more moves would follow. Also counts the workload if it is moving for balance.
 */
function countMoving(key: string, source: RebalanceSource, { leaving, underway }: Survey): void {
  const workload = source.workload(key)
  if (workload === undefined) return
  const copies = placedOn(workload as KubeObject)
  const move = newestMove(workload)
  const isForBalance = move?.cause === 'Rebalance' && [...move.from, ...move.to].every((name) => name in copies)
  const rule = isForBalance ? source.observe(key)?.choice.rebalance : undefined
  if (rule !== undefined) underway.set(rule.placement, (underway.get(rule.placement) ?? 0) + 1)
  for (const [member, copy] of Object.entries(copies)) {
    const isLeaving = ['Draining', 'Terminating', 'Forwarding'].includes(copy.state)
    if (!isLeaving && !(isForBalance && move.from.includes(member))) continue
    const sum = leaving.get(member) ?? new Map<string, Quantity>()
    addAmounts(sum, requestsOf(workload, copy.replicas))
    leaving.set(member, sum)
  }
}

/** Members that take workloads and whose limits are known. */
function membersOf(source: RebalanceSource, leaving: Sums): RebalanceMember[] {
  return [...source.members()].flatMap((member) => {
    const limits = limitsOf(member)
    const isUsable =
      isConditionTrue(member, 'Ready') && memberState(member) === 'Active' && unreachableSince(member) === undefined
    if (limits === undefined || !isUsable) return []
    const { name } = member.metadata
    const requested = new Map(source.requestedIn(name))
    addAmounts(requested, leaving.get(name) ?? new Map<string, Quantity>(), -1)
    return [{ name, limits, requested }]
  })
}

class Search {
  readonly #source: RebalanceSource
  readonly #underway: Map<string, number>
  readonly #found: (found: Found) => void
  /** The workload that was observed last: the result is the same for all its targets. */
  #last: { readonly unit: Unit; readonly observed: RebalanceObserved | undefined } | undefined

  constructor(source: RebalanceSource, underway: Map<string, number>, found: (found: Found) => void) {
    this.#source = source
    this.#underway = underway
    this.#found = found
  }

  /** Whether one more workload may move for this Placement. */
  hasTurn({ placement, maxMoves }: Pick<RebalanceRule, 'placement' | 'maxMoves'>): boolean {
    return (this.#underway.get(placement) ?? 0) < maxMoves
  }

  answer({ unit, to, fromPercent, toPercent, gainPercent }: RebalanceProposal<Unit>): RebalanceAnswer {
    if (this.#last?.unit !== unit) this.#last = { unit, observed: this.#movable(unit.key, unit.workload) }
    const { observed } = this.#last
    const rule = observed?.choice.rebalance
    if (observed === undefined || rule === undefined || !this.hasTurn(rule)) return 'stays'
    // Other members are fuller still.
    if (gainPercent < rule.thresholdPercent) return 'stays'
    const { key, member: from } = unit
    const joined = areJoined(this.#source.networkOf(from), this.#source.networkOf(to))
    if (!mayRebalanceTo(observed, { from, to, areJoined: joined })) return 'otherMember'
    const [full, empty] = [Math.round(fromPercent), Math.round(toPercent)]
    const message = `member cluster "${from}" is ${full} % full, "${to}" will be ${empty} % full with this workload; Placement "${rule.placement}" moves workloads for a difference of ${rule.thresholdPercent} percentage points`
    this.#take(rule)
    this.#found({ key, rebalancing: { from, to, message, isOver: false }, message })
    return 'move'
  }

  /** A workload that is divided by capacity, if its members should have other parts by now. */
  divideAgain(key: string): void {
    const workload = this.#source.workload(key)
    const observed = workload && this.#movable(key, workload)
    const { rebalance: rule, demand, present = {} } = observed?.choice ?? {}
    const { divide } = demand ?? {}
    if (observed === undefined || rule === undefined || divide === undefined || !this.hasTurn(rule)) return
    const { shares } = decide(observed.choice)
    if (shares === undefined) return
    const names = [...new Set([...Object.keys(shares), ...Object.keys(present)])].sort()
    const moved = names.reduce((sum, name) => sum + Math.max(0, (shares[name] ?? 0) - (present[name] ?? 0)), 0)
    if (moved === 0 || moved * 100 < divide.replicas * rule.thresholdPercent) return
    const parts = names.map((name) => `"${name}" ${shares[name] ?? 0} instead of ${present[name] ?? 0}`).join(', ')
    const message = `divided again by capacity: ${parts}; Placement "${rule.placement}" does this when ${rule.thresholdPercent} % of the replicas should be elsewhere`
    this.#take(rule)
    this.#found({ key, message })
  }

  #movable(key: string, workload: CachedObject): RebalanceObserved | undefined {
    // The workload has changed since it was read.
    if (this.#source.workload(key) !== workload) return undefined
    const observed = this.#source.observe(key)
    if (observed === undefined) return undefined
    const { nowMs } = this.#source
    const why = whyNotRebalanced({ ...observed, workload, budgets: this.#source.budgetsOf(key), nowMs })
    return why === undefined ? observed : undefined
  }

  #take({ placement }: RebalanceRule): void {
    this.#underway.set(placement, (this.#underway.get(placement) ?? 0) + 1)
  }
}
