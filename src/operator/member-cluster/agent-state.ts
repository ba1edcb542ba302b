// Why the agent of a member in pull mode does not count: what it waits for, and since when. Pure.
import type { DeepReadonly } from '#client/index.ts'
import { agentPhase, type MemberCluster } from '#crds/index.ts'

export interface AgentRefusal {
  readonly reason: string
  readonly message: string
}

/** Undefined for a member that is reached by a kubeconfig, and for one whose agent may connect. */
export function agentRefusal(member: DeepReadonly<MemberCluster>, nowMs: number): AgentRefusal | undefined {
  if (member.spec?.connection?.agent === undefined) return undefined
  const reason = agentPhase(member, nowMs)
  const message = messageOf(member, reason)
  return message === undefined ? undefined : { reason, message }
}

function messageOf(
  { metadata: { name }, spec, status }: DeepReadonly<MemberCluster>,
  phase: ReturnType<typeof agentPhase>,
): string | undefined {
  const { expires = '' } = spec?.agent?.token ?? {}
  const { key = '', askedAt = '' } = status?.agent ?? {}
  const again = `kcp member join ${name} --pull makes another one`
  switch (phase) {
    case 'WaitingForAgent':
      return `no agent has shown the token, which is valid until ${expires}: apply the manifest of kcp member join in the member`
    case 'TokenExpired':
      return `no agent has shown the token before it has expired, at ${expires}: ${again}`
    case 'WaitingForApproval':
      return `an agent with the key ${key} asks since ${askedAt}: kcp member approve ${name} lets it in, until ${expires}`
    case 'ApprovalExpired':
      return `the token has expired, at ${expires}, before the key ${key} of the agent was approved and used: ${again}`
    case 'CertificateExpired':
      return `all certificates of the agent have expired, because it was away for too long: kcp member join ${name} --pull lets it in again`
    case 'NotGranted':
      return `no agent may connect: it was revoked, or never asked for; kcp member join ${name} --pull lets one in`
    default:
      return undefined
  }
}
