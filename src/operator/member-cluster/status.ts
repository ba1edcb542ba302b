// The status of a MemberCluster. Pure.
import type { Condition } from '../../apimachinery/meta/index.ts'
import { setCondition, type MemberClusterStatus } from '../../crds/index.ts'

/** The result of asking a member. */
export type Probe =
  | {
      readonly kind: 'answered'
      readonly uid: string
      readonly version: string
      readonly nodes: { readonly ready: number; readonly total: number }
    }
  /** It answered 401 or 403. */
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'unreachable'; readonly message: string }
  /** There is no usable kubeconfig. */
  | { readonly kind: 'unusable'; readonly message: string }

export interface StatusInput {
  readonly previous: MemberClusterStatus | undefined
  readonly generation: number
  readonly state: 'Active' | 'Cordoned' | 'Draining'
  readonly probe: Probe
  /** The name of an older MemberCluster for the same physical cluster. */
  readonly twin: string | undefined
  /** `NAMESPACE/NAME` of the workloads with something in the member. */
  readonly placed: readonly string[]
  readonly nowMs: number
  /** RFC 3339 of nowMs. */
  readonly now: string
}

/** A new heartbeat alone causes a write after this time only. */
export const heartbeatMs = 30_000

/** The next status; `previous` itself if nothing has changed. */
export function memberClusterStatus(input: StatusInput): MemberClusterStatus {
  const { previous = {}, generation, probe, placed, nowMs, now } = input
  let conditions: readonly Readonly<Condition>[] = previous.conditions ?? []
  for (const update of conditionsOf(input))
    conditions = setCondition(conditions, { ...update, observedGeneration: generation }, now)
  const answered = probe.kind === 'answered'
  const beat = answered && nowMs - Date.parse(previous.lastHeartbeatTime ?? '1970-01-01T00:00:00Z') >= heartbeatMs
  const status: MemberClusterStatus = {
    ...previous,
    observedGeneration: generation,
    placed: placed.length,
    conditions: [...conditions],
    ...(answered && { id: probe.uid, version: probe.version, nodes: probe.nodes }),
    ...(beat && { lastHeartbeatTime: now }),
  }
  return JSON.stringify(status) === JSON.stringify(previous) ? previous : status
}

interface ConditionUpdate {
  readonly type: string
  readonly status: Condition['status']
  readonly reason: string
  readonly message: string
}

function conditionsOf({ probe, twin, state, placed }: StatusInput): ConditionUpdate[] {
  const condition = (type: string, status: Condition['status'], reason: string, message: string): ConditionUpdate => ({
    type,
    status,
    reason,
    message,
  })
  const accepted =
    twin === undefined
      ? condition('Accepted', 'True', 'Accepted', 'it is registered once')
      : condition('Accepted', 'False', 'RegisteredTwice', `the same cluster is registered as "${twin}"`)
  if (probe.kind === 'answered') {
    const ready =
      twin === undefined
        ? condition('Ready', 'True', 'Answers', 'its API answers')
        : condition('Ready', 'False', 'NotAccepted', accepted.message)
    const open = twin === undefined && state === 'Active'
    return [
      accepted,
      condition('Reachable', 'True', 'Answers', 'its API answers'),
      condition('CredentialsValid', 'True', 'Accepted', 'the member accepts our credentials'),
      ready,
      open
        ? condition('Schedulable', 'True', 'Active', 'it takes workloads')
        : condition(
            'Schedulable',
            'False',
            twin === undefined ? state : 'NotAccepted',
            twin === undefined ? closedMessage(state, placed) : accepted.message,
          ),
    ]
  }
  const { message } = probe
  if (probe.kind === 'refused') {
    return [
      accepted,
      condition('Reachable', 'True', 'Answers', 'its API answers'),
      condition('CredentialsValid', 'False', 'Refused', message),
      condition('Ready', 'Unknown', 'CredentialsInvalid', message),
      condition('Schedulable', 'False', 'NotReady', message),
    ]
  }
  const reason = probe.kind === 'unusable' ? 'ConnectionUnusable' : 'Unreachable'
  return [
    accepted,
    condition('Reachable', 'False', reason, message),
    condition('CredentialsValid', 'Unknown', reason, message),
    condition('Ready', 'Unknown', reason, message),
    condition('Schedulable', 'False', 'NotReady', message),
  ]
}

const maxNamed = 5

/** Why the member takes no workloads; while it drains, also what is still there. */
function closedMessage(state: StatusInput['state'], placed: readonly string[]): string {
  if (state !== 'Draining') return `its state is ${state}`
  if (placed.length === 0) return 'its state is Draining: no workloads are left there'
  const named = placed.toSorted().slice(0, maxNamed).join(', ')
  const more = placed.length > maxNamed ? ` and ${placed.length - maxNamed} more` : ''
  return `its state is Draining: workloads are left there: ${named}${more}`
}
