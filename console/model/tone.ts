// Whether a word of a status is good, a wait, or bad: for its colour. The word itself is always shown.

export type Tone = 'good' | 'wait' | 'bad' | 'plain'

const good = /^(True|Ready|Running|Active|Bound|Available|Serving|Succeeded|Completed|Complete|Established|Normal)$/
const waits =
  /^(Unknown|Pending|ContainerCreating|PodInitializing|Terminating|Assumed|Syncing|Applied|Draining|Forwarding|Cordoned|Released|Init:\d+\/\d+|NotReady|SchedulingDisabled|Moving)$/
const bad = /(Error|BackOff|Failed|Failure|Lost|Evicted|OOMKilled|Unschedulable|Invalid|Warning|Held|Fenced|Stalled)/

export function toneOf(text: string): Tone {
  if (text === '' || text.length > 60) return 'plain'
  if (good.test(text)) return 'good'
  if (waits.test(text)) return 'wait'
  if (text === 'False' || bad.test(text)) return 'bad'
  return 'plain'
}

/** The tone of a condition: of those that are bad when they are true, the other way around. */
export function conditionTone({ type, status }: { readonly type: string; readonly status: string }): Tone {
  if (status !== 'True' && status !== 'False') return 'wait'
  const isBadWhenTrue =
    /Pressure|Unavailable|Failing|Failure|Suspended|Conflict|NonStructural|Limited|Stalled|Drifted/.test(type)
  return (status === 'True') === isBadWhenTrue ? 'bad' : 'good'
}
