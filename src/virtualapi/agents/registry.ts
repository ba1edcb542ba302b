// The certificates of agents that count now, by the MemberClusters.
import type { Clock } from '#async/index.ts'
import type { DeepReadonly, Informer } from '#client/index.ts'
import { isNotReplaced, isValidAgentCertificate, type MemberCluster } from '#crds/index.ts'
import type { IncomingRequest } from '#virtualapi/request/exchange.ts'
import { createAgentIdentities, type AgentIdentities, type AgentIdentity } from './identity.ts'

export interface AgentRegistryOptions {
  readonly members: Pick<Informer<MemberCluster>, 'store' | 'onChange'>
  /** The authority of client certificates, PEM. */
  readonly clientCa: string
  readonly clock: Clock
}

export class AgentRegistry {
  readonly #members: AgentRegistryOptions['members']
  readonly #identities: AgentIdentities
  readonly #clock: Clock

  constructor({ members, clientCa, clock }: AgentRegistryOptions) {
    this.#members = members
    this.#identities = createAgentIdentities(clientCa, { clock })
    this.#clock = clock
  }

  /**
   * The agent that sends a request; undefined if its certificate is not that of an agent, does not count any more, or
   * was replaced by a newer one that the agent has used.
   */
  agentOf(request: Pick<IncomingRequest, 'peerCertificate'>): AgentIdentity | undefined {
    const agent = this.#identities.agentOf(request.peerCertificate)
    if (agent === undefined || !this.isValid(agent)) return undefined
    return isNotReplaced(this.#members.store.get(agent.member)?.status?.agent, agent.fingerprint) ? agent : undefined
  }

  /** Whether connections with the certificate may go on: the MemberCluster is the same, and has neither revoked nor forgotten it. */
  isValid({ member: name, uid, fingerprint }: Pick<AgentIdentity, 'member' | 'uid' | 'fingerprint'>): boolean {
    const member = this.#members.store.get(name)
    return member?.metadata.uid === uid && isValidAgentCertificate(member, fingerprint, this.#clock.now())
  }

  /**
   * Calls `revoked` after changes by which certificates of agents may not count any more. Returns the function that
   * ends the calls.
   */
  onRevoked(revoked: () => void): () => void {
    return this.#members.onChange(({ before, after }) => {
      if (before?.status?.agent !== undefined && grantOf(before) !== grantOf(after)) revoked()
    })
  }
}

/** Everything on which the validity of certificates depends, as text. */
function grantOf(member: DeepReadonly<MemberCluster> | undefined): string {
  return JSON.stringify([member?.metadata.uid, member?.spec?.agent, member?.status?.agent])
}
