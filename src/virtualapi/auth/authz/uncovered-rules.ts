// The wanted rules that a user does not hold, for the escalation check of RBAC.
import type { WorkBudget } from '#apimachinery/work-budget/index.ts'
import type { CompiledRules } from './compiled-rules.ts'
import { atomsOf, type PolicyRule } from './policy-rules.ts'

/** How many uncovered atomic rules are reported: a rule with four long lists has more of them than memory holds. */
const maxUncovered = 1000
/** Steps of the work budget to make an atomic rule. */
const atomSteps = 5

/**
 * The atomic rules of `wanted` that no rule of `held` allows, at most 1000; empty if all are covered. A rule counts
 * as uncovered if `work` runs out before it is decided.
 */
export function uncoveredRules(
  held: readonly CompiledRules[],
  wanted: readonly PolicyRule[],
  work: WorkBudget,
): PolicyRule[] {
  const uncovered: PolicyRule[] = []
  for (const rule of wanted) {
    // Decided without splitting the rule, where one held rule covers all of it.
    if (held.some((role) => role.coversWhole(rule, work) === true)) continue
    for (const atom of atomsOf(rule)) {
      if (!work.trySpend(atomSteps)) return [...uncovered, rule]
      if (held.some((role) => role.covers(atom, work) === true)) continue
      if (!work.trySpend(0)) return [...uncovered, rule]
      uncovered.push(atom)
      if (uncovered.length >= maxUncovered) return uncovered
    }
  }
  return uncovered
}
