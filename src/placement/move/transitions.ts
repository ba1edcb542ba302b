// The table of transitions: which state follows which, for whom, and what must be true first. The engine knows no other
// rule.
import type { CopyState } from '#crds/index.ts'
import type { Gate } from './guards.ts'
import type { MoveInput, Role, Strategy } from './move-input.ts'

export type StateOrNone = CopyState | 'None'

export interface Transition {
  readonly from: readonly StateOrNone[]
  readonly to: StateOrNone
  /** Absent: any. */
  readonly roles?: readonly Role[]
  /** Absent: any. */
  readonly strategies?: readonly Strategy[]
  /** All must be met; the first that is not is the gate at which the copy waits. */
  readonly gates: readonly Gate[]
  /** Absent: the copy does not wait for this transition, which is taken only when something goes wrong, or is over. */
  readonly wait?: Wait
}

export interface Wait {
  readonly seconds: (input: MoveInput) => number
  /**
   * What happens after `seconds`. Held: the wait goes on, old copies stay, and the workload shows the reason.
   */
  readonly then: 'Held' | 'Removed' | 'StartsElsewhere'
}

const heldAfter = (seconds: number): Wait => ({ seconds: () => seconds, then: 'Held' })
const oneByOne: readonly Strategy[] = ['breakBeforeMake']
const makeFirst: readonly Strategy[] = ['makeBeforeBreak']
const byOrdinal: readonly Strategy[] = ['ordinalByOrdinal']
const wanted: readonly Role[] = ['wanted']
const leaving: readonly Role[] = ['leaving']

/** In order: of the transitions whose guards are met, the first is taken. */
export const transitions: readonly Transition[] = [
  // A member that does not answer.
  { from: ['Applied', 'Available', 'Serving', 'Syncing'], to: 'Lost', gates: ['MemberLost'] },
  { from: ['Lost'], to: 'Fenced', gates: ['MemberFenced'] },
  // Other members may run the workload meanwhile: a copy that comes back with the member goes before a new one starts.
  { from: ['Fenced'], to: 'Terminating', gates: ['MemberNotFenced'] },
  {
    from: ['Lost'],
    to: 'Available',
    gates: ['MemberAnswers'],
    wait: { seconds: () => Infinity, then: 'StartsElsewhere' },
  },
  // The way in.
  { from: ['None', 'Held'], to: 'Assumed', roles: wanted, gates: [] },
  {
    from: ['Assumed'],
    to: 'Syncing',
    roles: wanted,
    strategies: makeFirst,
    gates: ['VolumesHere'],
    wait: heldAfter(600),
  },
  {
    from: ['Assumed'],
    to: 'Syncing',
    roles: wanted,
    strategies: oneByOne,
    gates: ['NothingElsewhere', 'VolumesHere'],
    wait: heldAfter(600),
  },
  {
    from: ['Assumed'],
    to: 'Syncing',
    roles: wanted,
    strategies: byOrdinal,
    gates: ['OrdinalFree', 'VolumesHere'],
    wait: heldAfter(600),
  },
  { from: ['Syncing'], to: 'Applied', roles: wanted, gates: ['SpecObserved'], wait: heldAfter(120) },
  {
    from: ['Applied'],
    to: 'Available',
    roles: wanted,
    gates: ['RolloutResumed', 'RolloutComplete'],
    wait: heldAfter(600),
  },
  {
    from: ['Available'],
    to: 'Serving',
    roles: wanted,
    gates: ['RolloutResumed', 'RolloutComplete', 'EndpointsPublished'],
    wait: heldAfter(600),
  },
  { from: ['Forwarding'], to: 'Terminating', roles: wanted, gates: [] },
  // A draining copy that is wanted again must prove again that it serves. A copy that is being deleted starts again
  // when it is gone.
  { from: ['Draining'], to: 'Available', roles: wanted, gates: [] },
  { from: ['Terminating'], to: 'Assumed', roles: wanted, gates: ['CopyGone'], wait: heldAfter(600) },
  // Wanted, and refused by the member: only where there is no copy yet.
  { from: ['None', 'Assumed', 'Held'], to: 'Held', roles: ['refused'], gates: [] },
  // The way out.
  { from: ['Held', 'Assumed'], to: 'None', roles: leaving, gates: [] },
  { from: ['Syncing'], to: 'Terminating', roles: leaving, strategies: makeFirst, gates: ['NeverServed'] },
  {
    from: ['Syncing', 'Applied', 'Available', 'Serving'],
    to: 'Draining',
    roles: leaving,
    strategies: makeFirst,
    gates: ['ReplacementServes', 'AddressesReplaced', 'NamespaceMayLeave'],
    wait: heldAfter(900),
  },
  {
    from: ['Syncing', 'Applied', 'Available', 'Serving'],
    to: 'Draining',
    roles: leaving,
    strategies: oneByOne,
    gates: ['SuccessorKnown', 'VolumesCopied'],
    wait: heldAfter(900),
  },
  {
    from: ['Syncing', 'Applied', 'Available', 'Serving'],
    to: 'Draining',
    roles: leaving,
    strategies: byOrdinal,
    gates: ['SuccessorKnown', 'VolumesCopied', 'OrdinalsMoved'],
    wait: heldAfter(900),
  },
  {
    from: ['Draining'],
    to: 'Available',
    roles: ['leaving', 'refused'],
    strategies: makeFirst,
    gates: ['NothingElseServes'],
  },
  {
    from: ['Draining'],
    to: 'Forwarding',
    roles: ['leaving', 'refused'],
    gates: ['RunsEnded', 'DrainElapsed', 'EndpointsGone', 'AddressesKnown'],
  },
  {
    from: ['Forwarding'],
    to: 'Terminating',
    roles: ['leaving', 'refused'],
    gates: ['AddressesForgotten'],
    wait: { seconds: ({ forwardSeconds = 0 }) => forwardSeconds, then: 'Removed' },
  },
  {
    from: ['Draining'],
    to: 'Terminating',
    roles: ['leaving', 'refused'],
    gates: ['RunsEnded', 'DrainElapsed', 'EndpointsGone'],
    wait: { seconds: ({ drainSeconds }) => drainSeconds * 3, then: 'Removed' },
  },
  { from: ['Terminating'], to: 'None', roles: ['leaving', 'refused'], gates: ['CopyGone'], wait: heldAfter(600) },
]
