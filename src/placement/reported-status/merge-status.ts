// The status of an object that is in several members, merged from what each member reports. Pure.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import {
  arrivingStates,
  canonicalJson,
  memberStatusesOf,
  sourceOf,
  type MemberStatus,
  type PlacedOn,
  type StatusCondition,
  type StatusRule,
} from '#crds/index.ts'

export interface MergeInput {
  /** Upstream generation now. */
  readonly generation: number
  /** The upstream spec now. */
  readonly spec: unknown
  /** The present status upstream: observedGeneration does not decrease, and unchanged conditions keep their times. */
  readonly previous: Readonly<Record<string, unknown>>
  /** The fields that the kind has. */
  readonly rule: StatusRule
  /** Reports, by member. */
  readonly reported: Readonly<Record<string, MemberStatus>>
  /** The copies, by member: the scheduler's decision. */
  readonly copies: PlacedOn
  /** RFC 3339: for conditions that change. */
  readonly now: string
}

const worstFirst = ['False', 'Unknown', 'True']

/**
 * Numbers are summed, other fields are those of the first member that serves. Of each condition, the worst among the
 * members that serve is taken, or among all while none serves. observedGeneration advances only when every target has
 * observed it: `kubectl rollout status` relies on it.
 */
export function mergeStatus(given: MergeInput): Record<string, unknown> {
  const input = withoutReplaced(given)
  const { generation, previous, reported, rule, copies, now } = input
  const status: Record<string, unknown> = {}
  const members = Object.keys(reported).sort()
  for (const field of rule.summed) {
    const sum = members.reduce((total, member) => total + numberIn(reported[member]?.[field]), 0)
    if (sum > 0) status[field] = sum
  }
  const first = askedMembers(reported, copies).find(
    (member) => reported[member]?.observed !== undefined && hasLooked(rule, reported[member]),
  )
  for (const field of rule.taken) {
    // A member that reports only an error, or nothing yet, has not looked: what is known stays.
    const source = first === undefined && members.length > 0 ? previous : reported[first ?? '']
    const value = source?.[field]
    if (value !== undefined) status[field] = value
  }
  if (rule.joinsAddresses) status['loadBalancer'] = joinedAddresses(members.map((member) => reported[member]))
  const observed = rule.observes ? observedGeneration(input) : 0
  const before = typeof previous['observedGeneration'] === 'number' ? previous['observedGeneration'] : 0
  const shown = Math.max(observed, Math.min(before, generation))
  if (shown > 0) status['observedGeneration'] = shown
  const conditions = rule.conditions === undefined ? [] : mergeConditions(input, now)
  if (conditions.length > 0) status['conditions'] = conditions
  return status
}

/** Whether the controller in the member has looked at the copy. */
function hasLooked({ awaitsConditions }: StatusRule, report: MemberStatus | undefined): boolean {
  return awaitsConditions !== true || (report?.conditions ?? []).length > 0
}

/** The last report of a lost member counts until another copy serves. */
function withoutReplaced(input: MergeInput): MergeInput {
  const { copies } = input
  if (!Object.values(copies).some(({ state }) => state === 'Serving')) return input
  const isLost = (member: string): boolean => ['Lost', 'Fenced'].includes(copies[member]?.state ?? '')
  const kept = Object.entries(input.reported).filter(([member]) => !isLost(member))
  const targets = Object.entries(copies).filter(([member]) => !isLost(member))
  return { ...input, reported: Object.fromEntries(kept), copies: Object.fromEntries(targets) }
}

function numberIn(value: unknown): number {
  return typeof value === 'number' ? value : 0
}

/** The members whose reports count: members that serve, or all members while none serves. */
function askedMembers(reported: MergeInput['reported'], copies: PlacedOn): string[] {
  const members = Object.keys(reported).sort()
  const serving = members.filter((member) => copies[member]?.state === 'Serving')
  return serving.length > 0 ? serving : members
}

/**
 * Addresses of members in which nothing of the namespace serves are not told to new clients, unless there are no
 * others.
 */
function joinedAddresses(reports: readonly (MemberStatus | undefined)[]): { ingress?: unknown[] } {
  const addressesOf = (report: MemberStatus | undefined): readonly unknown[] =>
    ((report?.['loadBalancer'] ?? {}) as { ingress?: readonly unknown[] }).ingress ?? []
  const told = reports.filter((report) => report?.['hidesAddresses'] !== true && addressesOf(report).length > 0)
  const found = new Map<string, unknown>()
  for (const report of told.length > 0 ? told : reports)
    for (const address of addressesOf(report)) found.set(canonicalJson(address), address)
  return found.size === 0 ? {} : { ingress: [...found.values()] }
}

/** Draining and terminating copies do not count: they do not get the present generation. */
function observedGeneration({ reported, copies, generation, spec }: MergeInput): number {
  const targets = Object.entries(copies).filter(
    ([, { state }]) => !['Draining', 'Terminating', 'Forwarding', 'Held'].includes(state),
  )
  // Without any target, nothing has been observed.
  const all =
    targets.length > 0 && targets.every(([member, copy]) => reported[member]?.observed === sourceOf(spec, copy))
  return all ? generation : 0
}

function mergeConditions({ reported, copies, previous, rule }: MergeInput, now: string): StatusCondition[] {
  const members = Object.keys(reported).sort()
  const asked = askedMembers(reported, copies)
  const found = new Map<string, StatusCondition>()
  for (const member of asked) {
    for (const condition of reported[member]?.conditions ?? []) {
      const known = found.get(condition.type)
      if (known === undefined || rank(condition) < rank(known)) found.set(condition.type, condition)
    }
  }
  if (members.length > 0 && !asked.some((member) => hasLooked(rule, reported[member])))
    for (const condition of conditionsOf(previous))
      if (!toldTypes.has(condition.type)) found.set(condition.type, condition)
  for (const member of members) if (!asked.includes(member)) addFailure(found, member, { reported, copies })
  const updateTime = rule.conditions === 'withUpdateTime' ? now : undefined
  for (const condition of toldConditions(reported, previous, { updateTime, now })) found.set(condition.type, condition)
  // Condition Placed is written by the scheduler, not by members.
  const placed = conditionsOf(previous).find(({ type }) => type === 'Placed')
  if (placed !== undefined) found.set(placed.type, placed)
  return [...found.values()].sort((a, b) => (a.type < b.type ? -1 : 1))
}

/**
 * Adds the condition that tells why the member makes no pods of a copy that does not serve yet, such as a quota. The
 * conditions come from members that serve, which do not tell it.
 */
function addFailure(
  found: Map<string, StatusCondition>,
  member: string,
  { reported, copies }: Pick<MergeInput, 'reported' | 'copies'>,
): void {
  const { state } = copies[member] ?? {}
  if (state === undefined || !arrivingStates.includes(state)) return
  const failure = reported[member]?.conditions?.find(({ type, status }) => type === failureType && status === 'True')
  if (failure !== undefined && !found.has(failureType))
    found.set(failureType, { ...failure, message: `${member}: ${failure['message'] ?? ''}` })
}

const failureType = 'ReplicaFailure'
/** The conditions that tell what a member refuses, and what others have changed there. */
const toldTypes: ReadonlySet<string> = new Set(['Synced', 'Drifted'])

interface Told {
  readonly error?: unknown
  readonly drift?: unknown
}

/** What members say of the object in one line, each after its name; undefined if they say nothing. */
function saidIn(reported: Readonly<Record<string, Told>>, field: keyof Told): string | undefined {
  const said = Object.entries(reported)
    .map(([member, report]) => [member, report[field]] as const)
    .filter(([, text]) => typeof text === 'string')
    .map(([member, text]) => `${member}: ${text as string}`)
    .sort()
  return said.length === 0 ? undefined : said.join('; ')
}

/**
 * The conditions of an object whose status no rule merges, with Synced False while members report errors, Drifted True
 * while others have changed a copy, and without them otherwise; undefined if they say so already.
 */
export function conditionsWithSynced(object: KubeObject, now: string): readonly StatusCondition[] | undefined {
  const previous = (object['status'] ?? {}) as MergeInput['previous']
  const before = conditionsOf(previous)
  const told = toldConditions(memberStatusesOf<Told>(object), previous, { now })
  const messageIn = (conditions: readonly StatusCondition[], wanted: string): string | undefined =>
    conditions.find(({ type }) => type === wanted)?.message
  if ([...toldTypes].every((type) => messageIn(before, type) === messageIn(told, type))) return undefined
  return [...before.filter(({ type }) => !toldTypes.has(type)), ...told]
}

function toldConditions(
  reported: Readonly<Record<string, Told>>,
  previous: MergeInput['previous'],
  { updateTime, now }: { readonly updateTime?: string | undefined; readonly now: string },
): StatusCondition[] {
  const [error, drift] = [saidIn(reported, 'error'), saidIn(reported, 'drift')]
  const found = [
    ...(error === undefined ? [] : [{ type: 'Synced', status: 'False', reason: 'SyncFailed', message: error }]),
    ...(drift === undefined ? [] : [{ type: 'Drifted', status: 'True', reason: 'Drifted', message: drift }]),
  ]
  return found.map((condition) => {
    const before = conditionsOf(previous).find(({ type }) => type === condition.type)
    return {
      ...condition,
      lastTransitionTime: before?.lastTransitionTime ?? now,
      ...(updateTime !== undefined && {
        lastUpdateTime: before?.message === condition.message ? (before.lastUpdateTime ?? updateTime) : updateTime,
      }),
    }
  })
}

function conditionsOf(status: MergeInput['previous']): StatusCondition[] {
  return Array.isArray(status['conditions']) ? (status['conditions'] as StatusCondition[]) : []
}

function rank({ status }: StatusCondition): number {
  return worstFirst.indexOf(status)
}
