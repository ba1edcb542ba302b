// Chooses members: filter, score, pick. Pure: the same input gives the same answer. Every refused member has a reason.
import type { Decision, Rejection } from '#placement/move/move-input.ts'
import { type Candidate, type Demand, type DivideDemand, noDemand, type Spread } from '#placement/rules/candidate.ts'
import type { Rebalancing } from '#placement/rules/rebalance-rule.ts'
import { refuseTarget, type Target } from '#placement/rules/target.ts'
import { chooseShares, roomFor } from './choose-divided.ts'
import { type FilterReason, filters, freeOf, refuseFull } from './filters.ts'
import { byScore } from './scores.ts'

export interface ChooseInput {
  readonly target: Target
  readonly demand?: Demand
  readonly candidates: readonly Candidate[]
  /** Members with a copy now. */
  readonly current: readonly string[]
  /** Of these, the members whose copy serves. */
  readonly serving?: readonly string[]
  /** How many replicas of a divided workload each member has. */
  readonly present?: Readonly<Record<string, number>>
  /**
   * Members with other workloads of the namespace: preferred, unless cordoned, draining or refused by another filter.
   */
  readonly near?: readonly string[]
  /** A move for balance that is under way or begins now. It counts only where nobody names members. */
  readonly rebalancing?: Rebalancing | undefined
}

/**
 * Where an object with this target should run. A copy stays when its member becomes Cordoned or NotReady, and leaves it
 * only when the member drains, or when a Placement or a taint of effect NoExecute forbids it and another member fits.
 */
export function choose({
  target,
  demand = noDemand,
  candidates,
  current,
  serving = [],
  near = [],
  present = {},
  rebalancing,
}: ChooseInput): Decision {
  if (target.kind === 'none') return { wanted: { kind: 'none' }, held: [], rejected: [] }
  const wrong = refuseTarget(target)
  if (wrong !== undefined) {
    const rejection: Rejection = { cluster: '', reason: 'WrongClusters', message: wrong }
    return { wanted: { kind: 'undecided' }, held: [rejection], rejected: [rejection] }
  }
  if (demand.divide !== undefined) return chooseDivided({ target, demand, candidates, current, present }, demand.divide)
  if (target.kind === 'best') {
    const balanced = rebalancing && memberForBalance(rebalancing, { demand, candidates, current, present })
    if (balanced !== undefined) return { wanted: { kind: 'members', names: [balanced] }, held: [], rejected: [] }
    return chooseBest({ target, demand, candidates, current, serving, near, present })
  }
  const byName = new Map(candidates.map((candidate) => [candidate.name, candidate]))
  const refused = target.names.map((name) => refuseNamed(name, byName.get(name), demand, current))
  const names = target.names.filter((_, i) => refused[i] === undefined)
  const held = refused.filter((rejection) => rejection !== undefined)
  if (names.length === 0) return { wanted: { kind: 'undecided' }, held, rejected: held }
  const running = candidates.filter(({ name }) => names.includes(name) && current.includes(name))
  const cramped = new Map(running.map((one) => [one.name, outgrown(one, demand, present[one.name] ?? 0)]))
  return capped(names, cramped, { held, rejected: held })
}

function refuseNamed(
  name: string,
  candidate: Candidate | undefined,
  demand: Demand,
  current: readonly string[],
): Rejection | undefined {
  if (candidate === undefined)
    return { cluster: name, reason: 'ClusterNotFound', message: `there is no member cluster "${name}"` }
  return current.includes(name) ? evict(candidate, demand) : refuse(candidate, demand)
}

function chooseBest({
  demand,
  candidates,
  current,
  serving,
  near,
  present,
}: Required<Omit<ChooseInput, 'rebalancing'>>): Decision {
  const here = candidates.filter(({ name }) => current.includes(name))
  const staying = here.filter((candidate) => evict(candidate, demand) === undefined)
  const order = byScore(demand)
  const cramped = new Map(staying.map((one) => [one.name, outgrown(one, demand, present[one.name] ?? 0)]))
  const roomy = staying.filter(({ name }) => cramped.get(name) === undefined)
  // A copy that serves is not given up for one that does not yet.
  const settled = roomy.filter(({ name, ready }) => ready && serving.includes(name))
  const stay = (settled.length > 0 ? settled : roomy).toSorted(order)[0]
  if (stay) return { wanted: { kind: 'members', names: [stay.name] }, held: [], rejected: [] }
  const refused = candidates
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map((candidate) => refuse(candidate, demand))
    .filter((rejection) => rejection !== undefined)
  const refusedNames = new Set(refused.map(({ cluster }) => cluster))
  const fitting = candidates.filter(({ name }) => !refusedNames.has(name))
  const even = keepEven(fitting, demand)
  const rejected = [...refused, ...unevenOf(fitting, even)]
  // Preferred even if the member is not Ready: without the other workloads of its namespace it may be useless.
  const preferred = candidates.filter(
    (one) => near.includes(one.name) && refuse({ ...one, ready: true }, demand) === undefined,
  )
  const best = preferred.toSorted(order)[0] ?? even.toSorted(order)[0]
  if (best) return { wanted: { kind: 'members', names: [best.name] }, held: [], rejected }
  const last = staying.toSorted(order)[0]
  if (last) return capped([last.name], cramped, { held: [], rejected })
  const why = rejected.length === 0 ? 'there is no member cluster' : summary(rejected)
  const held = { cluster: '', reason: sharedReason(rejected), message: why }
  return { wanted: { kind: 'undecided' }, held: [held], rejected }
}

/**
 * The member that a move for balance leads to, or back to; undefined if neither can take the workload: then a member is
 * chosen as always.
 */
function memberForBalance(
  { from, to, isOver }: Rebalancing,
  {
    demand,
    candidates,
    current,
    present,
  }: Required<Pick<ChooseInput, 'demand' | 'candidates' | 'current' | 'present'>>,
): string | undefined {
  if (!current.includes(from)) return undefined
  const name = isOver ? from : to
  const candidate = candidates.find((one) => one.name === name)
  if (candidate === undefined) return undefined
  if (!current.includes(name)) return refuse(candidate, demand) === undefined ? name : undefined
  const staysReady = candidate.ready && evict(candidate, demand) === undefined
  return staysReady && outgrown(candidate, demand, present[name] ?? 0) === undefined ? name : undefined
}

const workloadReasons = new Set<Rejection['reason']>(
  filters.filter(({ concernsWorkload = false }) => concernsWorkload).map(({ reason }) => reason),
)

/** The reason for which all members are refused, if it is about the workload itself. */
function sharedReason(rejected: readonly Rejection[]): Rejection['reason'] {
  const [first, ...others] = new Set(rejected.map(({ reason }) => reason))
  return first !== undefined && others.length === 0 && workloadReasons.has(first) ? first : 'NoClusterFits'
}

/** All members that fit, or all named members that fit. Replicas that a refused member would have go to the others. */
function chooseDivided(
  { target, demand, candidates, current, present }: Required<Omit<ChooseInput, 'serving' | 'near' | 'rebalancing'>>,
  divide: DivideDemand,
): Decision {
  const byName = new Map(candidates.map((candidate) => [candidate.name, candidate]))
  const names = target.kind === 'members' ? target.names : candidates.map(({ name }) => name)
  const rejected = names
    .toSorted()
    .map((name) => refuseNamed(name, byName.get(name), demand, current))
    .filter((rejection) => rejection !== undefined)
  const refused = new Set(rejected.map(({ cluster }) => cluster))
  const order = byScore(demand)
  const isThere = ({ name }: Candidate): number => Number(current.includes(name))
  const fitting = candidates
    .filter(({ name }) => names.includes(name) && !refused.has(name))
    .sort((a, b) => isThere(b) - isThere(a) || (isThere(a) === 1 ? (a.name < b.name ? -1 : 1) : order(a, b)))
  if (fitting.length === 0) {
    const message = rejected.length === 0 ? 'there is no member cluster' : summary(rejected)
    return { wanted: { kind: 'undecided' }, held: [{ cluster: '', reason: 'NoClusterFits', message }], rejected }
  }
  const { shares, short } = chooseShares({ divide, demand, fitting, present })
  const held: Rejection[] = short === undefined ? [] : [{ cluster: '', reason: 'InsufficientCapacity', message: short }]
  const chosen = Object.keys(shares).sort()
  return chosen.length === 0
    ? { wanted: { kind: 'undecided' }, held, rejected }
    : { wanted: { kind: 'members', names: chosen }, shares, held, rejected }
}

/** Members whose copy has outgrown them run as many replicas as fit. */
function capped(
  names: readonly string[],
  cramped: ReadonlyMap<string, Outgrown | undefined>,
  { held, rejected }: Pick<Decision, 'held' | 'rejected'>,
): Decision {
  const found = names.flatMap((name): [string, Outgrown][] => {
    const one = cramped.get(name)
    return one === undefined ? [] : [[name, one]]
  })
  const wanted = { kind: 'members', names } as const
  if (found.length === 0) return { wanted, held, rejected }
  const shares = Object.fromEntries(found.map(([name, { replicas }]) => [name, replicas]))
  return { wanted, shares, held: [...held, ...found.map(([, { rejection }]) => rejection)], rejected }
}

function unevenOf(fitting: readonly Candidate[], even: readonly Candidate[]): Rejection[] {
  return fitting
    .filter((candidate) => !even.includes(candidate))
    .map(({ name }) => ({
      cluster: name,
      reason: 'SpreadUneven',
      message: `member cluster "${name}" is in a domain with more copies than the others`,
    }))
}

/** Reasons why a tenant may not use a member: it is told of such a member only if it names it. */
export const hiddenReasons: ReadonlySet<string> = new Set<FilterReason>(['NotAdmitted', 'ForbiddenByPlacement'])

/** Members whose messages are told one by one; the annotation and Events that carry them are small. */
const maxShown = 10

/** The rejections in one text, without the names of members that the logical cluster may not use. */
function summary(rejected: readonly Rejection[]): string {
  const usable = rejected.filter(({ reason }) => !hiddenReasons.has(reason))
  const shown = usable.slice(0, maxShown).map(({ message }) => message)
  const more = usable.length - shown.length
  return [
    ...shown,
    ...(more > 0 ? [`${more} more member clusters do not fit`] : []),
    ...new Set(rejected.filter(({ reason }) => hiddenReasons.has(reason)).map(withoutName)),
  ].join('; ')
}

function withoutName({ cluster, message }: Rejection): string {
  return message.replace(`member cluster "${cluster}"`, 'a member cluster')
}

/** Why no new copy can be placed on the member; undefined if one can. */
export function refuse(candidate: Candidate, demand: Demand): Rejection | undefined {
  return firstRefusal(candidate, demand, filters)
}

const evictions = filters.filter(({ evicts = false }) => evicts)

/** Why a copy that is there should leave; undefined if it may stay. */
export function evict(candidate: Candidate, demand: Demand): Rejection | undefined {
  return firstRefusal(candidate, demand, evictions)
}

function firstRefusal(candidate: Candidate, demand: Demand, from: typeof filters): Rejection | undefined {
  for (const { reason, refuse: ask } of from) {
    const message = ask(candidate, demand)
    if (message !== undefined) return { cluster: candidate.name, reason, message }
  }
  return undefined
}

export interface Outgrown {
  /** How many replicas it may run there. */
  readonly replicas: number
  readonly rejection: Rejection
}

/**
 * Undefined if all replicas fit, or run already. `present`: how many are available there now, which are not taken away.
 */
export function outgrown(candidate: Candidate, demand: Demand, present: number): Outgrown | undefined {
  const { name, isBounded = false, limits, requested } = candidate
  const { pods } = demand
  const message = refuseFull(candidate, demand)
  if (!isBounded || message === undefined || limits === undefined || pods === undefined) return undefined
  const replicas = Math.max(present, roomFor(pods, freeOf(limits, requested)))
  if (replicas >= pods.replicas) return undefined
  const told = `${replicas} of ${pods.replicas} replicas run there: ${message}`
  return { replicas, rejection: { cluster: name, reason: 'InsufficientCapacity', message: told } }
}

/**
 * Of the members that fit, those on which another copy keeps the domains even. Each spread rule is applied to the rest.
 */
export function keepEven(fitting: readonly Candidate[], { spread }: Demand): readonly Candidate[] {
  return spread.reduce((left, rule) => evenBy(rule, left), fitting)
}

function evenBy({ topologyKey, maxSkew, minDomains = 1 }: Spread, candidates: readonly Candidate[]): Candidate[] {
  const counts = new Map<string, number>()
  for (const { labels, ownLoad = 0 } of candidates) {
    const domain = labels?.[topologyKey]
    if (domain !== undefined) counts.set(domain, (counts.get(domain) ?? 0) + ownLoad)
  }
  const least = counts.size < minDomains ? 0 : Math.min(...counts.values())
  return candidates.filter(({ labels }) => {
    const count = counts.get(labels?.[topologyKey] ?? '')
    return count !== undefined && count + 1 - least <= maxSkew
  })
}
