// The API server's access to members: their pods for logs, exec, metrics and writes, and TokenReviews of their pods'
// tokens.
import type { DeepReadonly } from '#apimachinery/meta/index.ts'
import type { MemberCluster, Placement } from '#crds/index.ts'
import { createMemberMetrics, type MemberMetrics } from './member-metrics.ts'
import { createMemberTokens } from './create-member-tokens.ts'
import { createMemberAccess, type MemberAccess } from './member-access.ts'
import { createPodConnector } from './create-pod-connector.ts'
import { createPodWriter } from './create-pod-writer.ts'
import { MemberConnections, type MembersOptions, type Registrations } from './member-connections.ts'
import { createMemberKeys } from './member-keys.ts'
import type { MemberTokens } from '#virtualapi/auth/authn/member-tokens.ts'
import { systemClock } from '#async/index.ts'
import type { PodConnector } from './pod-connector.ts'
import type { PodWriter } from './pod-writer.ts'

export { type MembersOptions, type Registrations } from './member-connections.ts'
export { type PodConnection, type PodConnector } from './pod-connector.ts'

export interface Members extends AsyncDisposable {
  readonly podConnector: PodConnector
  readonly podWriter: PodWriter
  readonly metrics: MemberMetrics
  readonly access: MemberAccess
  readonly memberTokens: Pick<MemberTokens, 'verify'>
  /** The MemberClusters. Absent where none can be registered. */
  readonly registrations?: Registrations
  /** The members and the Placements of admins, as they are known now. */
  readonly fleet: {
    all(): readonly DeepReadonly<MemberCluster>[]
    adminPlacements(): readonly DeepReadonly<Placement>[]
    /**
     * Calls `changed` after changes of members or Placements, at most once a second, until the returned function is
     * called.
     */
    onChange(changed: () => void): () => void
  }
  /** True if a member may run pods of a logical cluster with these labels. Also true until the members are known. */
  mayRunPods(labels: Readonly<Record<string, string>> | undefined): boolean
  /** The name of the member of this short id; undefined if there is none. */
  nameOf(memberId: string, signal: AbortSignal): Promise<string | undefined>
}

/**
 * Connects to the members registered in `options.transport`, each when it is first needed. The signal or the disposal
 * of the result closes the connections.
 */
export function createMembers(options: MembersOptions): Members {
  const members = new MemberConnections(options)
  const { clock = systemClock } = options
  return {
    podConnector: createPodConnector({ members }),
    podWriter: createPodWriter({ members }),
    metrics: createMemberMetrics({ members, clock }),
    access: createMemberAccess({ members }),
    memberTokens: createMemberTokens({ members, keys: createMemberKeys({ clock }) }),
    registrations: members.registrations,
    fleet: members,
    mayRunPods: (labels) => members.mayRunPods(labels),
    nameOf: (memberId, signal) => members.nameOf(memberId, signal),
    [Symbol.asyncDispose]: () => members[Symbol.asyncDispose](),
  }
}
