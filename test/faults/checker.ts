// The consistency checker: pure, over a recorded history. It knows neither HTTP nor this program.
import { checkObjects, type Violation } from './check-objects.ts'
import { checkWatches } from './check-watches.ts'
import type { History } from './history.ts'

/** Violations reported per rule: more would add nothing. */
const maxPerRule = 10

/** The violations in this history: observations that no correct server can produce. Empty for a good one. */
export function violationsOf(history: History): readonly Violation[] {
  const found: Violation[] = []
  const counts = new Map<string, number>()
  const report = (rule: string, what: string): void => {
    const count = (counts.get(rule) ?? 0) + 1
    counts.set(rule, count)
    if (count <= maxPerRule) found.push({ rule, what })
  }
  checkObjects(history, report)
  checkWatches(history, report)
  return found
}
