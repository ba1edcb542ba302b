// Decides on a request of an agent for a certificate. Pure.
import { timingSafeEqual } from 'node:crypto'
import { conflict, statusError, unauthorized, type StatusError } from '#apimachinery/status/index.ts'
import { timestamp } from '#async/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import {
  agentKeyOf,
  isApproved,
  isNotReplaced,
  isReadmitted,
  isValidAgentCertificate,
  kubeSystemUidAnnotation,
  maxTokenMs,
  memberClusters,
  readmissionMs,
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
  /** The last certificate, which has expired, for another one. */
  | { readonly kind: 'expired'; readonly agent: AgentIdentity }

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
  const { proof } = asked
  switch (proof.kind) {
    case 'token':
      return decideByToken(asked, proof.hash, { member, others, nowMs })
    case 'certificate':
      return decideRenewal(asked, proof.agent, { member, nowMs })
    case 'expired':
      return decideReadmission(asked, proof.agent, { member, nowMs })
  }
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

/**
 * Exactly this member, this MemberCluster, and a certificate that counts. The certificate vouches for the key that asks,
 * which may be a new one; once the agent has used the new certificate, the old one is worth nothing here.
 */
function decideRenewal(
  { name, claims }: AskedCertificate,
  agent: AgentIdentity,
  { member, nowMs }: Pick<Seen, 'member' | 'nowMs'>,
): Verdict {
  if (agent.member !== name || member.metadata.uid !== agent.uid) return guess()
  const known = member.status?.agent
  if (known === undefined || !isValidAgentCertificate(member, agent.fingerprint, nowMs)) return guess()
  if (!isNotReplaced(known, agent.fingerprint)) return guess()
  return { do: 'issue', agent: { ...kept({ ...known, used: agent.fingerprint }, nowMs), claims } }
}

/**
 * An agent that was away for longer than its certificate is valid. The certificate proves that the agent is the one
 * that was approved once; since nobody could revoke what may have been copied meanwhile without knowing of it, an admin
 * decides again, by the fingerprint.
 */
function decideReadmission(
  { name, key, claims }: AskedCertificate,
  agent: AgentIdentity,
  { member, nowMs }: Pick<Seen, 'member' | 'nowMs'>,
): Verdict {
  if (agent.member !== name || member.metadata.uid !== agent.uid) return guess()
  const known = member.status?.agent
  const { certificates = [] } = known ?? {}
  const expired = certificates.find(({ fingerprint }) => fingerprint === agent.fingerprint)
  if (known === undefined || expired === undefined || !isApproved(member)) return guess()
  if (!isNotReplaced(known, agent.fingerprint)) return guess()
  if (nowMs - Date.parse(expired.expires) > readmissionMs)
    return refuse(
      statusError(403, 'Forbidden', `the certificate has expired at ${expired.expires}: run kcp member join again`),
    )
  if (key !== '' && key !== agentKeyOf(known, agent.fingerprint))
    return refuse(statusError(403, 'Forbidden', 'another certificate is issued for the key of the expired one only'))
  const { readmission, ...rest } = kept(known, nowMs)
  if (isReadmitted(member) && readmission?.certificate === agent.fingerprint)
    return { do: 'issue', agent: { ...rest, claims } }
  const isFirst = readmission?.certificate !== agent.fingerprint
  const asked = isFirst ? { certificate: agent.fingerprint, askedAt: timestamp(nowMs) } : readmission
  return { do: 'wait', agent: { ...rest, claims, readmission: asked } }
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

/** The status without the certificates that are over; the last ones stay until they cannot be replaced any more. */
function kept(known: DeepReadonly<AgentStatus>, nowMs: number): AgentStatus {
  const certificates = (known.certificates ?? []).filter(({ expires, fingerprint }) => {
    const leftMs = Date.parse(expires) - nowMs
    return leftMs > (isNotReplaced(known, fingerprint) ? -readmissionMs : 0)
  })
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
