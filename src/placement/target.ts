// Which rule decides where an object should run: its own annotation, its namespace's, a Placement, or none.
import { clustersAnnotation } from '../crds/index.ts'

/** These members, no member, or the best member. */
export type Target =
  | { readonly kind: 'members'; readonly names: readonly string[] }
  | { readonly kind: 'none' }
  | { readonly kind: 'best' }

type Annotations = Readonly<Record<string, string>> | undefined

/** The part of a Placement that decides. */
export interface PlacementRule {
  readonly name: string
  readonly priority: number
  readonly creationTimestamp: string
  readonly clusters?: readonly string[]
}

export interface Rules {
  readonly object: Annotations
  readonly namespace: Annotations
  /** Placements that apply, in levels: the tenant's, then those of admins. */
  readonly placements: readonly (readonly PlacementRule[])[]
}

/** The target of an object. Exactly one rule decides; within a level the highest priority, then the oldest, then by name. */
export function targetOf({
  object,
  namespace,
  placements,
}: Rules): Target & { readonly source: 'object' | 'namespace' | 'placement' | 'default' } {
  const own = object?.[clustersAnnotation]
  if (own !== undefined) return { ...parseTarget(own), source: 'object' }
  const shared = namespace?.[clustersAnnotation]
  if (shared !== undefined) return { ...parseTarget(shared), source: 'namespace' }
  for (const level of placements) {
    const [first] = level.filter((rule) => rule.clusters !== undefined).toSorted(byRank)
    if (first?.clusters) return { ...members(first.clusters), source: 'placement' }
  }
  return { kind: 'best', source: 'default' }
}

/** Names in one rule: each gets an entry in an annotation of the object, and the size of annotations is limited. */
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

function byRank(a: PlacementRule, b: PlacementRule): number {
  return b.priority - a.priority || compare(a.creationTimestamp, b.creationTimestamp) || compare(a.name, b.name)
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
