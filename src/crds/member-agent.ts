// The agent of a member in pull mode: the grant that an admin gives it, what the server knows of it, and what follows
// from both. Pure.
import type { DeepReadonly } from '#apimachinery/meta/index.ts'
import type { JsonSchema } from './crd.ts'

/** spec.agent: written by admins, by `kcp member join --pull`, `approve` and `revoke`. */
export interface AgentGrant {
  token?: JoinToken
  approval?: AgentApproval
}

/** A one-time token, with which an agent asks for its first certificate. */
export interface JoinToken {
  /** SHA-256 of the token, hexadecimal. The token itself is stored nowhere. */
  hash: string
  /** RFC 3339. */
  expires: string
  /** Whether the token is the approval, too: the first agent that shows it is accepted. */
  approves?: boolean
}

export interface AgentApproval {
  /** The hash of the token that the agent has shown: another token voids the approval. */
  token: string
  /** The fingerprint of the agent's key. */
  key: string
  /** The certificate that has expired, and for which the agent gets another one. */
  certificate?: string
}

/** status.agent: written by the API server when agents ask for certificates. */
export interface AgentStatus {
  /** The hash of the token that was used. */
  token?: string
  /** The fingerprint of the key that was shown with the token. */
  key?: string
  /** When this key was shown first. */
  askedAt?: string
  /** What the agent says about its member: a claim, not evidence. */
  claims?: AgentClaims
  /** The certificates that are valid, and those that may have expired only a while ago; the newest comes last. */
  certificates?: AgentCertificate[]
  /** The newest certificate that the agent has used: older ones open nothing any more. */
  used?: string
  /** The agent was away for longer than its certificate is valid, and asks for another one. */
  readmission?: AgentReadmission
  /** The agent's connection to us. */
  tunnel?: AgentTunnel
}

export interface AgentReadmission {
  /** The certificate that has expired. */
  certificate: string
  /** When the agent asked first. */
  askedAt: string
}

/** What is known of a tunnel since it was opened or refused last. */
export interface AgentTunnel {
  /** When the agent connected, after it was not connected. */
  since?: string
  /** The version of the tunnel's protocol. */
  protocol?: number
  /** What the agent says it is and can do: a claim. */
  agentVersion?: string
  capabilities?: string[]
  /** Why the tunnel was refused; absent once it is open. */
  refused?: TunnelRefusal
}

export interface TunnelRefusal {
  reason: 'AgentTooOld' | 'AgentTooNew'
  message: string
}

export interface AgentClaims {
  kubernetesVersion?: string
  /** The uid of the member's namespace kube-system. */
  kubeSystemUID?: string
  agentVersion?: string
}

export interface AgentCertificate {
  /** SHA-256 of the certificate, hexadecimal. */
  fingerprint: string
  /** RFC 3339. */
  expires: string
  /** The fingerprint of its key; absent: the key that was shown with the token. */
  key?: string
}

/** A MemberCluster, as far as its agent is concerned. */
interface WithAgent {
  readonly spec?: { readonly connection?: { readonly agent?: unknown }; readonly agent?: AgentGrant }
  readonly status?: { readonly agent?: AgentStatus }
}

/** The port of an agent at which pods reach their API. */
export const agentApiPort = 6443

/**
 * How long after its end a certificate may still ask for another one, which an admin approves. It is bounded, because a
 * key that was stolen from an old backup must become worthless by itself.
 */
export const readmissionMs = 90 * 24 * 60 * 60_000

/** The longest life of a token. */
export const maxTokenMs = 24 * 60 * 60_000

/** How many certificates of an agent are valid at a time; the oldest ends when there are more. */
export const maxAgentCertificates = 8

/** How many capabilities of an agent are kept. */
export const maxAgentCapabilities = 16

/** The longest claim, in characters. */
export const maxClaim = 253

export type AgentPhase =
  /** The member is not in pull mode, and no agent was asked for. */
  | 'None'
  /** No agent has shown the token yet. */
  | 'WaitingForAgent'
  /** The token has expired before an agent has shown it. */
  | 'TokenExpired'
  /** An agent has shown the token; an admin has to approve its key. */
  | 'WaitingForApproval'
  /** The token has expired before an admin has approved the key. */
  | 'ApprovalExpired'
  /** The agent may fetch its certificate. */
  | 'Approved'
  /** The agent has a certificate. */
  | 'Enrolled'
  /** All certificates of the agent have expired. */
  | 'CertificateExpired'
  /** The same, and the agent asks for another one; an admin has to approve that. */
  | 'WaitingForReadmission'
  /** An admin has revoked the agent, or has never given it a token. */
  | 'NotGranted'

/** The state of the agent of a member. */
export function agentPhase(member: DeepReadonly<WithAgent>, nowMs: number): AgentPhase {
  const { spec, status } = member
  const { token } = spec?.agent ?? {}
  if (token === undefined) return spec?.connection?.agent === undefined ? 'None' : 'NotGranted'
  const isOver = Date.parse(token.expires) <= nowMs
  const agent = status?.agent
  if (agent?.token !== token.hash || agent.key === undefined) return isOver ? 'TokenExpired' : 'WaitingForAgent'
  if (!isApproved(member)) return isOver ? 'ApprovalExpired' : 'WaitingForApproval'
  const { certificates = [] } = agent
  if (certificates.length === 0) return isOver ? 'ApprovalExpired' : 'Approved'
  if (certificates.some(({ expires }) => Date.parse(expires) > nowMs)) return 'Enrolled'
  if (agent.readmission === undefined) return 'CertificateExpired'
  return isReadmitted(member) ? 'Approved' : 'WaitingForReadmission'
}

/** An agent that waits for an admin. */
export interface WaitingAgent {
  /** The fingerprint of the key that asks: keys are renewed with certificates. */
  readonly key: string
  readonly askedAt: string
  /** spec.agent.approval for it: it means nothing for another agent, whatever has happened meanwhile. */
  readonly approval: { readonly token: string; readonly key: string; readonly certificate: string | null }
}

/** The agent that waits for an admin; undefined if none does. */
export function waitingAgent(member: DeepReadonly<WithAgent>, nowMs: number): WaitingAgent | undefined {
  const phase = agentPhase(member, nowMs)
  const { key = '', token = '', askedAt = '', readmission } = member.status?.agent ?? {}
  if (phase === 'WaitingForApproval') return { key, askedAt, approval: { token, key, certificate: null } }
  if (phase !== 'WaitingForReadmission' || readmission === undefined) return undefined
  const { certificate } = readmission
  const shown = agentKeyOf(member.status?.agent, certificate) ?? ''
  return { key: shown, askedAt: readmission.askedAt, approval: { token, key, certificate } }
}

/** Whether an admin has approved another certificate for the one that has expired. */
export function isReadmitted({ spec, status }: DeepReadonly<WithAgent>): boolean {
  const asked = status?.agent?.readmission?.certificate
  return asked !== undefined && spec?.agent?.approval?.certificate === asked
}

/** The fingerprint of the key of a certificate of the agent; without one, of its newest. */
export function agentKeyOf(agent: DeepReadonly<AgentStatus> | undefined, certificate?: string): string | undefined {
  const { certificates = [], key } = agent ?? {}
  const found =
    certificate === undefined
      ? certificates.at(-1)
      : certificates.find(({ fingerprint }) => fingerprint === certificate)
  return found?.key ?? key
}

/** Whether the agent has not used a newer certificate than this one. */
export function isNotReplaced(agent: DeepReadonly<AgentStatus> | undefined, fingerprint: string): boolean {
  const { certificates = [], used } = agent ?? {}
  const place = (of: string | undefined): number => certificates.findIndex((one) => one.fingerprint === of)
  return place(fingerprint) >= place(used)
}

/** Whether an admin has approved the key that was shown with the present token. */
export function isApproved({ spec, status }: DeepReadonly<WithAgent>): boolean {
  const { token, approval } = spec?.agent ?? {}
  const agent = status?.agent
  if (token === undefined || agent?.key === undefined || agent.token !== token.hash) return false
  return token.approves === true || (approval?.token === token.hash && approval.key === agent.key)
}

/** Whether a certificate of this fingerprint counts for the member: it was issued, is approved and was not revoked. */
export function isValidAgentCertificate(member: DeepReadonly<WithAgent>, fingerprint: string, nowMs: number): boolean {
  const { certificates = [] } = member.status?.agent ?? {}
  const isKnown = certificates.some((one) => one.fingerprint === fingerprint && Date.parse(one.expires) > nowMs)
  return isKnown && isApproved(member)
}

const hash = { type: 'string', pattern: '^[0-9a-f]{64}$', minLength: 64, maxLength: 64 } as const
const keyFingerprint = { type: 'string', pattern: '^SHA256:[A-Za-z0-9+/]{43}$', minLength: 50, maxLength: 50 } as const
const claim = { type: 'string', maxLength: maxClaim } as const

export const agentGrantSchema: JsonSchema = {
  type: 'object',
  description:
    'Which agent may connect as this member. Written by kcp member join --pull, approve and revoke; without it no agent may connect.',
  properties: {
    token: {
      type: 'object',
      description: 'The one-time token with which an agent asks for its first certificate.',
      required: ['hash', 'expires'],
      properties: {
        hash: { ...hash, description: 'SHA-256 of the token.' },
        expires: { type: 'string', format: 'date-time', description: 'The end of the token.' },
        approves: {
          type: 'boolean',
          description: 'The first agent that shows the token is accepted without another approval.',
        },
      },
    },
    approval: {
      type: 'object',
      description: 'The key of an agent that an admin has approved.',
      required: ['token', 'key'],
      properties: {
        token: { ...hash, description: 'SHA-256 of the token that the agent has shown.' },
        key: { ...keyFingerprint, description: 'The fingerprint of the key.' },
        certificate: {
          ...hash,
          description: 'SHA-256 of the certificate that has expired, and for which the agent gets another one.',
        },
      },
    },
  },
}

export const agentStatusSchema: JsonSchema = {
  type: 'object',
  description: 'What is known of the agent; written by the API server.',
  properties: {
    token: { ...hash, description: 'SHA-256 of the token that was used.' },
    key: { ...keyFingerprint, description: 'The fingerprint of the key that was shown with the token.' },
    askedAt: { type: 'string', format: 'date-time', description: 'When this key was shown first.' },
    claims: {
      type: 'object',
      description: 'What the agent says about its cluster, before anybody has verified it.',
      properties: { kubernetesVersion: claim, kubeSystemUID: claim, agentVersion: claim },
    },
    certificates: {
      type: 'array',
      description: 'The certificates that are valid, and the last one for a while after its end.',
      maxItems: maxAgentCertificates,
      'x-kubernetes-list-type': 'atomic',
      items: {
        type: 'object',
        required: ['fingerprint', 'expires'],
        properties: {
          fingerprint: { ...hash, description: 'SHA-256 of the certificate.' },
          expires: { type: 'string', format: 'date-time' },
          key: { ...keyFingerprint, description: 'The fingerprint of its key.' },
        },
      },
    },
    used: { ...hash, description: 'The newest certificate that the agent has used: older ones open nothing any more.' },
    readmission: {
      type: 'object',
      description: 'The agent was away for too long, and asks for another certificate.',
      required: ['certificate', 'askedAt'],
      properties: {
        certificate: { ...hash, description: 'SHA-256 of the certificate that has expired.' },
        askedAt: { type: 'string', format: 'date-time', description: 'When it asked first.' },
      },
    },
    tunnel: {
      type: 'object',
      description:
        "The agent's connection, as it was opened or refused last. Condition Reachable says whether it is open.",
      properties: {
        since: { type: 'string', format: 'date-time', description: 'When the agent connected.' },
        protocol: { type: 'integer', description: "The version of the tunnel's protocol." },
        agentVersion: { ...claim, description: 'The version of the agent, as it says.' },
        capabilities: {
          type: 'array',
          description: 'What the agent says it can do.',
          maxItems: maxAgentCapabilities,
          'x-kubernetes-list-type': 'atomic',
          items: { type: 'string', maxLength: 32 },
        },
        refused: {
          type: 'object',
          description: 'Why the tunnel was refused.',
          required: ['reason', 'message'],
          properties: {
            reason: { type: 'string', enum: ['AgentTooOld', 'AgentTooNew'] },
            message: { type: 'string', maxLength: 1024 },
          },
        },
      },
    },
  },
}
