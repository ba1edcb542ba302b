// The Events about a MemberCluster: one for each condition that changed. Pure.
import type { Condition } from '#apimachinery/meta/index.ts'
import type { EventText } from '#operator/framework/record-event.ts'

/** These are True while something is wrong. */
const problems: ReadonlySet<string> = new Set(['DeletionsSuspended', 'SyncFailing'])

/**
 * What to tell after the conditions of a member have changed: each with another status or reason, its message included. Those
 * that only follow from another one (Ready, while Reachable or Accepted says why) are not repeated.
 */
export function transitions(
  before: readonly Readonly<Condition>[] = [],
  after: readonly Readonly<Condition>[] = [],
): EventText[] {
  const changed = after.filter(({ type, status, reason }) => {
    const known = before.find((condition) => condition.type === type)
    return known?.status !== status || known.reason !== reason
  })
  const told = new Set<string>()
  return changed.flatMap(({ type, status, reason, message }) => {
    if (told.has(message)) return []
    told.add(message)
    return [
      status === 'True'
        ? { type: problems.has(type) ? 'Warning' : 'Normal', reason: type, message }
        : { type: eventType(reason), reason, message },
    ]
  })
}

/** An admin who closes a member need not be warned. */
function eventType(reason: string): EventText['type'] {
  return reason === 'Cordoned' || reason === 'Draining' ? 'Normal' : 'Warning'
}
