// The status of a MemberCluster: a pure function of what a probe found.
import type { Condition } from '../../apimachinery/meta/index.ts'
import { setCondition, type MemberClusterStatus } from '../../crds/index.ts'

/** What one look at a member gave. */
export type Probe =
  | {
      readonly kind: 'answered'
      readonly uid: string
      readonly version: string
      readonly nodes: { readonly ready: number; readonly total: number }
    }
  /** It answered that it does not believe us, or that we may not ask. */
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'unreachable'; readonly message: string }
  /** We have nothing to reach it with. */
  | { readonly kind: 'unusable'; readonly message: string }

export interface StatusInput {
  readonly previous: MemberClusterStatus | undefined
  readonly generation: number
  readonly state: 'Active' | 'Cordoned' | 'Draining'
  readonly probe: Probe
  /** The name of an older MemberCluster for the same physical cluster. */
  readonly twin: string | undefined
  /** Workloads that have something there. */
  readonly placed: readonly string[]
  readonly nowMs: number
  /** RFC 3339 of nowMs. */
  readonly now: string
}

/** A heartbeat alone is written no more often than this. */
export const heartbeatMs = 30_000

/** The next status; the same object where there is nothing to write. */
export function memberStatus(input: StatusInput): MemberClusterStatus {
  const { previous = {}, generation, probe, placed, nowMs, now } = input
  let conditions: readonly Readonly<Condition>[] = previous.conditions ?? []
  const words = conditionsOf(input)
  for (const word of words) conditions = setCondition(conditions, { ...word, observedGeneration: generation }, now)
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

interface Word {
  readonly type: string
  readonly status: Condition['status']
  readonly reason: string
  readonly message: string
}

function conditionsOf({ probe, twin, state, placed }: StatusInput): Word[] {
  const word = (type: string, status: Condition['status'], reason: string, message: string): Word => ({
    type,
    status,
    reason,
    message,
  })
  const accepted =
    twin === undefined
      ? word('Accepted', 'True', 'Accepted', 'it is registered once')
      : word('Accepted', 'False', 'RegisteredTwice', `the same cluster is registered as "${twin}"`)
  if (probe.kind === 'answered') {
    const ready =
      twin === undefined
        ? word('Ready', 'True', 'Answers', 'its API answers')
        : word('Ready', 'False', 'NotAccepted', accepted.message)
    const open = twin === undefined && state === 'Active'
    return [
      accepted,
      word('Reachable', 'True', 'Answers', 'its API answers'),
      word('CredentialsValid', 'True', 'Believed', 'our credentials are believed'),
      ready,
      open
        ? word('Schedulable', 'True', 'Active', 'it takes workloads')
        : word(
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
      word('Reachable', 'True', 'Answers', 'its API answers'),
      word('CredentialsValid', 'False', 'Refused', message),
      word('Ready', 'Unknown', 'CredentialsInvalid', message),
      word('Schedulable', 'False', 'NotReady', message),
    ]
  }
  const reason = probe.kind === 'unusable' ? 'ConnectionUnusable' : 'Unreachable'
  return [
    accepted,
    word('Reachable', 'False', reason, message),
    word('CredentialsValid', 'Unknown', reason, message),
    word('Ready', 'Unknown', reason, message),
    word('Schedulable', 'False', 'NotReady', message),
  ]
}

const namedAtMost = 5

/** Who drains a member wants to know when it is empty, and what keeps it from being so. */
function closedMessage(state: StatusInput['state'], placed: readonly string[]): string {
  if (state !== 'Draining') return `its state is ${state}`
  if (placed.length === 0) return 'its state is Draining: nothing is placed there any more'
  const named = placed.toSorted().slice(0, namedAtMost).join(', ')
  const more = placed.length > namedAtMost ? ` and ${placed.length - namedAtMost} more` : ''
  return `its state is Draining: still there are ${named}${more}`
}
