// How the API server reaches members: their pods for logs and exec, and TokenReviews of their pods' tokens.
import { createMemberTokens } from './create-member-tokens.ts'
import { createPodConnector } from './create-pod-connector.ts'
import { MemberConnections, type MembersOptions } from './member-connections.ts'
import { createMemberKeys } from './member-keys.ts'
import type { MemberTokens } from '../authn/member-tokens.ts'
import { systemClock } from '../../async/index.ts'
import type { PodConnector } from './pod-connector.ts'

export { type MembersOptions } from './member-connections.ts'
export { type PodConnection, type PodConnector } from './pod-connector.ts'

export interface Members extends AsyncDisposable {
  readonly podConnector: PodConnector
  readonly memberTokens: Pick<MemberTokens, 'verify'>
  /** The name of the member of this short id; undefined if there is none. */
  nameOf(memberId: string, signal: AbortSignal): Promise<string | undefined>
}

/** Connects to the members registered in `options.transport`, each when first needed. Closed by the signal or on disposal. */
export function createMembers(options: MembersOptions): Members {
  const members = new MemberConnections(options)
  return {
    podConnector: createPodConnector({ members }),
    memberTokens: createMemberTokens({ members, keys: createMemberKeys({ clock: options.clock ?? systemClock }) }),
    nameOf: (memberId, signal) => members.nameOf(memberId, signal),
    [Symbol.asyncDispose]: () => members[Symbol.asyncDispose](),
  }
}
