// Why the agent of a member in pull mode does not count: what it waits for, and since when; and how long its certificate
// is valid. Pure.
import { timestamp } from '#async/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import { agentPhase, readmissionMs, waitingAgent, type MemberCluster } from '#crds/index.ts'

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
      return refuse('CertificateExpired', expiredText(member, nowMs))
    case 'WaitingForReadmission': {
      const waiting = waitingAgent(member, nowMs)
      return refuse(
        'WaitingForReadmission',
        `the agent is back after its certificate has expired, and asks since ${waiting?.askedAt ?? ''} with the key ${waiting?.key ?? ''}: kcp member approve ${name} lets it in again`,
      )
    }
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

const dayMs = 24 * 60 * 60_000
/** An agent renews its certificate when a third of its life is left, which are 2.3 days: then it has not done so. */
const lateMs = 2 * dayMs

/** How long the agent's certificate is valid; undefined for a member without a certificate that is. */
export function agentCertificate(
  member: DeepReadonly<MemberCluster>,
  nowMs: number,
): (AgentRefusal & { readonly status: 'True' | 'False' }) | undefined {
  if (member.spec?.connection?.agent === undefined) return undefined
  const phase = agentPhase(member, nowMs)
  if (phase === 'CertificateExpired' || phase === 'WaitingForReadmission')
    return { status: 'False', ...refuse('CertificateExpired', expiredText(member, nowMs)) }
  if (phase !== 'Enrolled') return undefined
  const endMs = lastEndOf(member)
  const until = `the certificate of the agent is valid until ${timestamp(endMs)}, for ${daysText(endMs - nowMs)}`
  if (endMs - nowMs > lateMs) return { status: 'True', ...refuse('Valid', `${until}; the agent renews it`) }
  const message = `${until}, and the agent has not renewed it: look at the log of Deployment kcp-agent in its namespace kcp-system`
  return { status: 'True', ...refuse('NotRenewed', message) }
}

function expiredText(member: DeepReadonly<MemberCluster>, nowMs: number): string {
  const { name } = member.metadata
  const endMs = lastEndOf(member)
  const expired = `the certificate of the agent has expired at ${timestamp(endMs)}, because the agent was away`
  const leftMs = endMs + readmissionMs - nowMs
  const again = `kcp member join ${name} --pull, whose manifest is to be applied there`
  return leftMs > 0
    ? `${expired}: once it is back, kcp member approve ${name} lets it in again, for another ${daysText(leftMs)}; later: ${again}`
    : `${expired} for too long: ${again}`
}

function lastEndOf({ status }: DeepReadonly<MemberCluster>): number {
  return Math.max(...(status?.agent?.certificates ?? []).map(({ expires }) => Date.parse(expires)))
}

/** Whole days, so that the text changes once a day. */
function daysText(ms: number): string {
  const days = Math.floor(ms / dayMs)
  return days < 1 ? 'less than a day' : days === 1 ? '1 day' : `${days} days`
}

function refuse(reason: string, message: string): AgentRefusal {
  return { reason, message }
}
