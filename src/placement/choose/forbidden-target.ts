// Checks the members that a tenant names against the rules of admins. Pure.
import type { DeepReadonly } from '#apimachinery/meta/index.ts'
import type { MemberCluster } from '#crds/index.ts'
import type { Bound, Candidate } from '#placement/rules/candidate.ts'
import { isWithin } from './filters.ts'
import { memberFacts } from '#placement/rules/member-facts.ts'
import type { Target } from '#placement/rules/target.ts'

export interface TargetRules {
  /** The Placements of admins that apply. */
  readonly bounds: readonly Bound[]
  readonly members: readonly DeepReadonly<MemberCluster>[]
  /** Labels of the LogicalCluster. */
  readonly clusterLabels: Readonly<Record<string, string>> | undefined
}

/** The most members that a refusal lists: it is one line for people to read. */
const maxShown = 10

/**
 * A text with the rule that forbids a named member, and the allowed members; undefined if no named member is forbidden.
 * A member that does not exist may be named, because it may join later, unless a rule names only other members.
 */
export function forbiddenTarget(target: Target, rules: TargetRules): string | undefined {
  if (target.kind !== 'members') return undefined
  const candidates = rules.members.map((member) => candidateOf(member, rules))
  const byName = new Map(candidates.map((one) => [one.name, one]))
  for (const name of target.names) {
    const rule = ruleAgainst(name, byName.get(name), rules.bounds)
    if (rule === undefined) continue
    const allowed = candidates.filter((one) => ruleAgainst(one.name, one, rules.bounds) === undefined)
    return `${rule}; ${allowedText(allowed.map((one) => one.name).sort())}`
  }
  return undefined
}

/** The members that the rules of admins let a logical cluster use, by name. */
export function allowedMembers<M extends DeepReadonly<MemberCluster>>(
  members: readonly M[],
  rules: Omit<TargetRules, 'members'>,
): M[] {
  const isAllowed = (member: M): boolean =>
    ruleAgainst(member.metadata.name, candidateOf(member, rules), rules.bounds) === undefined
  return members.filter(isAllowed).toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
}

function candidateOf(member: DeepReadonly<MemberCluster>, { clusterLabels }: Pick<TargetRules, 'clusterLabels'>) {
  return { ...memberFacts(member, { clusterLabels }), state: 'Active', load: 0 } as const satisfies Candidate
}

function ruleAgainst(name: string, candidate: Candidate | undefined, bounds: readonly Bound[]): string | undefined {
  const forbids = (bound: Bound): boolean =>
    candidate === undefined ? bound.clusters?.includes(name) === false : !isWithin(bound, candidate)
  const bound = bounds.find(forbids)
  if (bound !== undefined)
    return `Placement "${bound.placement}" of the administrators does not allow member cluster "${name}"`
  return candidate?.admits === false ? `member cluster "${name}" does not admit this logical cluster` : undefined
}

function allowedText(names: readonly string[]): string {
  if (names.length === 0) return 'no member cluster is allowed'
  const shown = names.slice(0, maxShown).map((name) => `"${name}"`)
  const more = names.length - shown.length
  return `allowed: ${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
