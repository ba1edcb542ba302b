// The rules of a ClusterRole with an aggregationRule: the rules of all ClusterRoles that its selectors match. Pure.
import { selectorFromObject, type LabelSelector } from '#apimachinery/selector/index.ts'
import type { WorkBudget } from '#apimachinery/work-budget/index.ts'
import { canonical, type DecodedRole, type KeyedRule } from './decoded-roles.ts'

/** Bounds on aggregated rules: a role that the API would take with the same bounds. */
const maxRules = 10_000
const maxLength = 1024 * 1024
/** Selectors of one logical cluster; each is matched with each of its ClusterRoles. */
const maxSelectors = 1000

/** Called once for each role that is looked at; awaited if it returns a promise. */
type Pause = () => Promise<void> | undefined

/** A ClusterRole that others may aggregate. */
export interface SourceRole {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  /** Size of its JSON. */
  readonly bytes: number
  readonly rules: () => readonly KeyedRule[]
}

/**
 * The rules `role` should have, given the ClusterRoles it may aggregate, sorted by name: ordered by selector, then by name,
 * each different rule once. Undefined if they are more than 10,000 or 1 MiB, or if `work` does not last for the bytes of
 * the roles that are aggregated.
 */
export async function aggregatedRules(
  role: Pick<DecodedRole, 'name' | 'selectors'>,
  sources: readonly SourceRole[],
  { work, pause }: { readonly work: WorkBudget; readonly pause: Pause },
): Promise<readonly KeyedRule[] | undefined> {
  const selectors = role.selectors.map((source) => selectorFromObject(source))
  // By the first selector that matches; a role that is matched again adds nothing.
  const matched: SourceRole[][] = selectors.map(() => [])
  for (const other of sources) {
    const due = pause()
    if (due !== undefined) await due
    if (other.name === role.name) continue
    const first = selectors.findIndex((selector) => selector.matches(other.labels))
    if (first >= 0) matched[first]?.push(other)
  }
  const rules = new Map<string, KeyedRule>()
  let length = 0
  for (const other of matched.flat()) {
    const due = pause()
    if (due !== undefined) await due
    if (!work.trySpendBytes(other.bytes)) return undefined
    for (const rule of other.rules()) {
      if (rules.has(rule.text)) continue
      length += rule.text.length
      if (rules.size === maxRules || length > maxLength) return undefined
      rules.set(rule.text, rule)
    }
  }
  return [...rules.values()]
}

/**
 * Whether one of these ClusterRoles aggregates from a ClusterRole with these labels. Undefined if they have more than 1000
 * different selectors.
 */
export function aggregatesFrom(
  roles: readonly Pick<DecodedRole, 'selectors'>[],
): ((labels: Readonly<Record<string, string>>) => boolean) | undefined {
  const selectors = new Map<string, LabelSelector>()
  for (const source of roles.flatMap((role) => role.selectors)) {
    const text = canonical(source)
    if (!selectors.has(text)) selectors.set(text, selectorFromObject(source))
    if (selectors.size > maxSelectors) return undefined
  }
  const all = [...selectors.values()]
  return (labels) => all.some((selector) => selector.matches(labels))
}

/** Whether both are the same rules in the same order; the order of fields inside a rule does not matter. */
export function sameRules(a: readonly KeyedRule[], b: readonly KeyedRule[]): boolean {
  return a.length === b.length && a.every(({ text }, i) => text === b[i]?.text)
}
