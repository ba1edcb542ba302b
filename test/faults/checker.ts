// The consistency checker: pure, over a recorded history. It knows nothing of HTTP or of us.
import { checkObjects, type Violation } from './check-objects.ts'
import { checkWatches } from './check-watches.ts'
import type { History } from './history.ts'

/** More of one rule tell nothing new. */
const maxPerRule = 10

/** What in this history no correct server would have said; empty for a good one. */
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
