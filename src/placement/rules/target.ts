// The rule that decides where an object should run: its own annotation, its namespace's, a Placement, or none.
import type { DeepReadonly } from '#apimachinery/meta/index.ts'
import type { Amounts } from '#apimachinery/quantity/index.ts'
import {
  clustersAnnotation,
  type DivisionBound,
  type FixedSelector,
  type PlacementApply,
  type PlacementMove,
  type PlacementRebalance,
  type PlacementReplicas,
  type PlacementVolumes,
} from '#crds/index.ts'
import type { Bound, Demand, Preference, Spread } from './candidate.ts'
import type { NamedClass } from './classes.ts'
import type { Toleration } from './taints.ts'

/** These members, no member, or the best member. */
export type Target =
  | { readonly kind: 'members'; readonly names: readonly string[] }
  | { readonly kind: 'none' }
  | { readonly kind: 'best' }

type Annotations = Readonly<Record<string, string>> | undefined

/** `spec.replicas` of a Placement that nobody changes any more. */
export type FixedReplicas = Readonly<Omit<PlacementReplicas, 'bounds'>> & { readonly bounds?: readonly DivisionBound[] }

/** The part of a Placement that decides. */
export interface PlacementRule {
  readonly name: string
  readonly priority: number
  readonly creationTimestamp: string
  readonly clusters?: readonly string[]
  readonly require?: FixedSelector
  readonly cel?: string
  readonly prefer?: readonly Preference[]
  readonly tolerations?: readonly Toleration[]
  readonly spread?: readonly Spread[]
  readonly tolerationSeconds?: number
  readonly replicas?: FixedReplicas
  /** Does not decide about the target, and neither do `apply`, `rebalance` and `volumes`. */
  readonly move?: PlacementMove
  readonly apply?: PlacementApply
  readonly rebalance?: PlacementRebalance
  readonly volumes?: DeepReadonly<PlacementVolumes>
}

export interface Rules {
  readonly object: Annotations
  readonly namespace: Annotations
  /**
   * Placements that apply, in levels: the tenant's, those of admins for this logical cluster, those of admins for all.
   */
  readonly placements: readonly (readonly PlacementRule[])[]
}

export interface ChosenTarget {
  readonly target: Target
  readonly source: 'object' | 'namespace' | 'placement' | 'default'
  /** The Placement that decides. If an annotation chooses the members, its other parts still hold. */
  readonly rule?: PlacementRule
}

/**
 * The target of an object. Exactly one rule decides; within a level the highest priority, then the oldest, then by
 * name.
 */
export function targetOf({ object, namespace, placements }: Rules): ChosenTarget {
  const found = decidingRule(placements)
  const rule = found === undefined ? {} : { rule: found }
  const own = object?.[clustersAnnotation]
  if (own !== undefined) return { target: parseTarget(own), source: 'object', ...rule }
  const shared = namespace?.[clustersAnnotation]
  if (shared !== undefined) return { target: parseTarget(shared), source: 'namespace', ...rule }
  if (found === undefined) return { target: { kind: 'best' }, source: 'default' }
  const target: Target = found.clusters === undefined ? { kind: 'best' } : members(found.clusters)
  return { target, source: 'placement', rule: found }
}

/** The first rule of the first level that says anything. */
function decidingRule(placements: Rules['placements']): PlacementRule | undefined {
  for (const level of placements) {
    const [first] = level.filter(decides).toSorted(byRank)
    if (first !== undefined) return first
  }
  return undefined
}

function decides({
  clusters,
  require,
  cel,
  prefer,
  tolerations,
  spread,
  tolerationSeconds,
  replicas,
}: PlacementRule): boolean {
  return [clusters, require, cel, prefer, tolerations, spread, tolerationSeconds, replicas].some(
    (field) => field !== undefined,
  )
}

/**
 * Demands of an object on its member besides its target. `bounds`: the Placements of admins that apply, all of them.
 * A choice by annotation replaces what the Placement requires, never what the bounds do.
 */
export function demandOf(
  { source, rule }: ChosenTarget,
  {
    bounds,
    requests,
    classes = [],
  }: {
    readonly bounds: readonly PlacementRule[]
    readonly requests: Amounts
    readonly classes?: readonly NamedClass[]
  },
): Demand {
  return {
    bounds: boundsOf(bounds),
    ...(source === 'placement' && rule?.require && { require: { placement: rule.name, labelSelector: rule.require } }),
    ...(source === 'placement' && rule?.cel && { requireCel: { placement: rule.name, expression: rule.cel } }),
    prefer: rule?.prefer ?? [],
    tolerations: rule?.tolerations ?? [],
    spread: rule?.spread ?? [],
    requests,
    classes,
    ...(rule?.tolerationSeconds !== undefined && { tolerationSeconds: rule.tolerationSeconds }),
  }
}

/** The bounds by Placements of admins, for tenants' choices, too. */
export function boundsOf(rules: readonly PlacementRule[]): Bound[] {
  return rules
    .filter(({ clusters, require, cel }) => [clusters, require, cel].some((field) => field !== undefined))
    .toSorted(byRank)
    .map(({ name, clusters, require, cel }) => ({
      placement: name,
      ...(clusters && { clusters }),
      ...(require && { require }),
      ...(cel && { cel }),
    }))
}

/** How many names a rule may have: each gets an entry in an annotation, and the size of annotations is limited. */
const maxNames = 100
/** A valid name of a MemberCluster. */
const memberName = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/
const maxShown = 64

/** Why this target is invalid, whatever members there are; undefined if it is valid. */
export function refuseTarget(target: Target): string | undefined {
  if (target.kind !== 'members') return undefined
  if (target.names.length > maxNames)
    return `${target.names.length} member clusters are named: at most ${maxNames} can be`
  const wrong = target.names.find((name) => !memberName.test(name))
  if (wrong === undefined) return undefined
  const shown = wrong.length > maxShown ? `${wrong.slice(0, maxShown)}...` : wrong
  return `"${shown}" is not a valid name of a member cluster`
}

/** Parses `east` or `east,west`; `none` or empty means no member. Order and duplicates do not matter. */
export function parseTarget(text: string): Target {
  const names = text.split(',').map((name) => name.trim())
  return members(names.filter((name) => name !== '' && name !== 'none'))
}

function members(names: readonly string[]): Target {
  return names.length === 0 ? { kind: 'none' } : { kind: 'members', names: [...new Set(names)].sort() }
}

/** Of two rules of one level, the one that decides first. */
export function byRank(a: PlacementRule, b: PlacementRule): number {
  return b.priority - a.priority || compare(a.creationTimestamp, b.creationTimestamp) || compare(a.name, b.name)
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
