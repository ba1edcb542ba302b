// Why the agent of a member in pull mode does not count: what it waits for, and since when. Pure.
import type { DeepReadonly } from '#client/index.ts'
import { agentPhase, type MemberCluster } from '#crds/index.ts'

export interface AgentRefusal {
  readonly reason: string
  readonly message: string
}

/** Undefined for a member that is reached by a kubeconfig, and for one whose agent may connect. */
export function agentRefusal(member: DeepReadonly<MemberCluster>, nowMs: number): AgentRefusal | undefined {
  const { name } = member.metadata
  if (member.spec?.connection?.agent === undefined) return undefined
  const { expires = '' } = member.spec.agent?.token ?? {}
  const { key = '', askedAt = '' } = member.status?.agent ?? {}
  const again = `kcp member join ${name} --pull makes another one`
  switch (agentPhase(member, nowMs)) {
    case 'WaitingForAgent':
      return refuse(
        'WaitingForAgent',
        `no agent has shown the token, which is valid until ${expires}: apply the manifest of kcp member join in the member`,
      )
    case 'TokenExpired':
      return refuse('TokenExpired', `no agent has shown the token before it has expired, at ${expires}: ${again}`)
    case 'WaitingForApproval':
      return refuse(
        'WaitingForApproval',
        `an agent with the key ${key} asks since ${askedAt}: kcp member approve ${name} lets it in, until ${expires}`,
      )
    case 'ApprovalExpired':
      return refuse(
        'ApprovalExpired',
        `the token has expired, at ${expires}, before the key ${key} of the agent was approved and used: ${again}`,
      )
    case 'CertificateExpired':
      return refuse(
        'CertificateExpired',
        `all certificates of the agent have expired, because it was away for too long: kcp member join ${name} --pull lets it in again`,
      )
    case 'NotGranted':
      return refuse(
        'NotGranted',
        `no agent may connect: it was revoked, or never asked for; kcp member join ${name} --pull lets one in`,
      )
    case 'Enrolled':
      return member.status?.agent?.tunnel?.refused
    default:
      return undefined
  }
}

function refuse(reason: string, message: string): AgentRefusal {
  return { reason, message }
}
