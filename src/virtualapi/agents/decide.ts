// Decides on a request of an agent for a certificate. Pure.
import { timingSafeEqual } from 'node:crypto'
import { conflict, statusError, unauthorized, type StatusError } from '#apimachinery/status/index.ts'
import { timestamp } from '#async/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import {
  isApproved,
  isValidAgentCertificate,
  kubeSystemUidAnnotation,
  maxTokenMs,
  memberClusters,
  type AgentClaims,
  type AgentStatus,
  type MemberCluster,
} from '#crds/index.ts'
import type { AgentIdentity } from './identity.ts'

/** A request whose signature was verified. */
export interface AskedCertificate {
  /** The name in the path. */
  readonly name: string
  /** The fingerprint of the key that asks. */
  readonly key: string
  readonly claims: AgentClaims
  readonly proof: AgentProof
}

export type AgentProof =
  /** The hash of a one-time token. */
  | { readonly kind: 'token'; readonly hash: string }
  /** The present certificate, for its renewal. */
  | { readonly kind: 'certificate'; readonly agent: AgentIdentity }

export type Verdict =
  /** `isGuess`: the client has proved nothing, and the refusal tells it nothing. */
  | { readonly do: 'refuse'; readonly error: StatusError; readonly isGuess: boolean }
  /** An admin has to approve the key. `agent`: status.agent from now on. */
  | { readonly do: 'wait'; readonly agent: AgentStatus }
  /** Sign a certificate, and add it to `agent`, which is status.agent from now on. */
  | { readonly do: 'issue'; readonly agent: AgentStatus }

/** Tokens that live longer than they may: clocks differ by a few minutes. */
const clockSkewMs = 5 * 60_000

/** `member`: the MemberCluster of this name, if there is one; `others`: all MemberClusters. */
export function decide(
  asked: AskedCertificate,
  member: DeepReadonly<MemberCluster> | undefined,
  others: readonly DeepReadonly<MemberCluster>[],
  nowMs: number,
): Verdict {
  if (member === undefined || member.metadata.name !== asked.name) return guess()
  return asked.proof.kind === 'token'
    ? decideByToken(asked, asked.proof.hash, { member, others, nowMs })
    : decideRenewal(asked, asked.proof.agent, { member, nowMs })
}

interface Seen {
  readonly member: DeepReadonly<MemberCluster>
  readonly others: readonly DeepReadonly<MemberCluster>[]
  readonly nowMs: number
}

function decideByToken(
  { name, key, claims }: AskedCertificate,
  hash: string,
  { member, others, nowMs }: Seen,
): Verdict {
  const token = member.spec?.agent?.token
  if (token === undefined || !isEqual(token.hash, hash)) return guess()
  const leftMs = Date.parse(token.expires) - nowMs
  // From here on, the client has shown the token.
  if (!(leftMs > 0)) return refuse(unauthorized('the token has expired: run kcp member join again'))
  if (leftMs > maxTokenMs + clockSkewMs)
    return refuse(unauthorized('the token lives longer than 24 h, and does not count'))
  if (member.metadata.deletionTimestamp !== undefined)
    return refuse(conflict(memberClusters, name, 'it is being deleted'))
  const known = member.status?.agent
  if (known?.token === hash && known.key !== key)
    return refuse(
      statusError(403, 'Forbidden', 'another key has used the token, which works once: run kcp member join again'),
    )
  const clash = clashOf(claims, member, others)
  if (clash !== undefined) return refuse(conflict(memberClusters, name, clash))
  const isFirst = known?.token !== hash
  const agent: AgentStatus = isFirst
    ? { token: hash, key, askedAt: timestamp(nowMs), claims, certificates: [] }
    : { ...kept(known, nowMs), claims }
  const isAccepted = isApproved({ spec: member.spec ?? {}, status: { agent } })
  return { do: isAccepted ? 'issue' : 'wait', agent }
}

/** Exactly this member, this MemberCluster, a certificate that counts, and the same key. */
function decideRenewal(
  { name, key, claims }: AskedCertificate,
  agent: AgentIdentity,
  { member, nowMs }: Pick<Seen, 'member' | 'nowMs'>,
): Verdict {
  if (agent.member !== name || member.metadata.uid !== agent.uid) return guess()
  const known = member.status?.agent
  if (known === undefined || !isValidAgentCertificate(member, agent.fingerprint, nowMs)) return guess()
  if (key !== known.key || key !== agent.key)
    return refuse(statusError(403, 'Forbidden', 'a certificate is renewed for the key that it was issued for'))
  return { do: 'issue', agent: { ...kept(known, nowMs), claims } }
}

/** Why the cluster of these claims cannot be this member; undefined if it can. The operator verifies it later. */
function clashOf(
  { kubeSystemUID }: AgentClaims,
  member: DeepReadonly<MemberCluster>,
  others: readonly DeepReadonly<MemberCluster>[],
): string | undefined {
  const known = uidOf(member)
  if (known !== undefined && known !== kubeSystemUID)
    return 'another cluster is registered under this name: choose another one, or delete that MemberCluster first'
  const twin = others.find((one) => one.metadata.name !== member.metadata.name && uidOf(one) === kubeSystemUID)
  return kubeSystemUID === undefined || twin === undefined
    ? undefined
    : `this cluster is registered already, as "${twin.metadata.name}"`
}

function uidOf({ metadata, status }: DeepReadonly<MemberCluster>): string | undefined {
  return status?.id ?? metadata.annotations?.[kubeSystemUidAnnotation]
}

/** The status without the certificates that are over. */
function kept(known: DeepReadonly<AgentStatus>, nowMs: number): AgentStatus {
  const certificates = (known.certificates ?? []).filter(({ expires }) => Date.parse(expires) > nowMs)
  return { ...(known as AgentStatus), certificates }
}

function isEqual(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** The same refusal for a member that does not exist, for a wrong token, and for a certificate that does not count. */
function guess(): Verdict {
  return { do: 'refuse', error: unauthorized(), isGuess: true }
}

function refuse(error: StatusError): Verdict {
  return { do: 'refuse', error, isGuess: false }
}
