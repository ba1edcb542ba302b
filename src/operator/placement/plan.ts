// The next decision for one workload: where it should run, and the next step of the move there. Pure.
import { maxPlacedNamespaceLength, type PlacedOn } from '../../crds/index.ts'
import { choose, move, type Decision, type Rejection } from '../../placement/index.ts'
import type { Choice, Observed } from './observe.ts'

export interface PlanOptions {
  readonly nowMs: number
  /** How long a copy keeps running after it takes no new traffic. */
  readonly drainSeconds: number
  /** How long a copy must serve before another one drains. */
  readonly soakSeconds: number
}

export interface Plan {
  readonly decision: Decision
  /** What to write on the workload; `observed.placedOn` itself if nothing changes. */
  readonly placedOn: PlacedOn
  /** Whether the reasons why copies are held are written on the workload. They are not where there are no members. */
  readonly isWritten: boolean
  /** When only the passing of time will change the plan. */
  readonly requeueAfterSeconds?: number
}

export function plan(observed: Observed, { nowMs, drainSeconds, soakSeconds }: PlanOptions): Plan {
  const decision = decide(observed.choice)
  const isWritten = observed.choice.candidates.length > 0
  if (!isWritten && Object.keys(observed.placedOn).length === 0)
    return { decision, placedOn: observed.placedOn, isWritten }
  const { placedOn, requeueAfterMs } = move({
    now: nowMs,
    placedOn: observed.placedOn,
    decision,
    seen: observed.seen,
    mayDrain: (member) => observed.isFlat(member) || siblingsServeElsewhere(observed, member),
    drainSeconds,
    soakSeconds,
  })
  const requeueAfter = requeueAfterMs === undefined ? {} : { requeueAfterSeconds: requeueAfterMs / 1000 }
  return { decision, placedOn, isWritten, ...requeueAfter }
}

/** Where the workload should run; a namespace that is too long for members is held. */
export function decide({ namespace, target, candidates, current, near }: Choice): Decision {
  if (namespace.length <= maxPlacedNamespaceLength) return choose({ target, candidates, current, near })
  const message = `namespace "${namespace}" has more than ${maxPlacedNamespaceLength} characters`
  const rejection: Rejection = { cluster: '', reason: 'NamespaceNameTooLong', message }
  return { wanted: { kind: 'undecided' }, held: [rejection], rejected: [rejection] }
}

/**
 * Pods of members without a flat network cannot reach each other, so a namespace moves as a whole: no workload drains on a
 * member before every workload that leaves this member serves on another one.
 */
function siblingsServeElsewhere({ siblings }: Observed, member: string): boolean {
  for (const { placedOn, choice } of siblings()) {
    const copy = placedOn[member]
    if (copy === undefined || ['Held', 'Draining', 'Terminating'].includes(copy.state)) continue
    const wanted = choice === undefined ? undefined : decide(choice).wanted
    const staysOrEnds = wanted?.kind === 'none' || (wanted?.kind === 'members' && wanted.names.includes(member))
    if (staysOrEnds) continue
    if (!Object.entries(placedOn).some(([name, { state }]) => name !== member && state === 'Serving')) return false
  }
  return true
}
