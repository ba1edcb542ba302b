// `POST /services/agent/MEMBER/certificate`: the first certificate of an agent, for a one-time token, and its renewal,
// for the present certificate. The state is in the MemberCluster, so any replica answers, and a replica that is killed
// between the write and the response has used up the token for the key that showed it, and for no other.
import { createHash } from 'node:crypto'
import { isStatusError, methodNotServed, tooManyRequests, unauthorized } from '#apimachinery/status/index.ts'
import { sleep, timestamp, type Clock } from '#async/index.ts'
import type { DeepReadonly, Informer, KubeClient } from '#client/index.ts'
import {
  agentKeyOf,
  maxAgentCertificates,
  maxClaim,
  memberClusters,
  type AgentCertificate,
  type AgentClaims,
  type AgentStatus,
  type MemberCluster,
} from '#crds/index.ts'
import { FailureBudget, type Pki } from '#virtualapi/auth/authn/index.ts'
import { jsonDocument } from '#virtualapi/codec/responses.ts'
import { headerOf, type BytesResponse, type IncomingRequest } from '#virtualapi/request/exchange.ts'
import { readSmallJson } from '#virtualapi/request/small-body.ts'
import { decide, type AgentProof, type AskedCertificate, type Verdict } from './decide.ts'
import { certificateFingerprint, createAgentIdentities, isAgentMemberName, type AgentIdentities } from './identity.ts'
import { readSigningRequest, type AgentKey } from './signing-request.ts'

export interface EnrolmentOptions {
  readonly pki: Pick<Pki, 'clientCa' | 'signAgentKey'>
  /** The MemberClusters, and the API that has them. */
  readonly members: Pick<Informer<MemberCluster>, 'store' | 'synced'>
  readonly client: Pick<KubeClient, 'get' | 'patch'>
  readonly clock: Clock
  /** Validity of certificates in seconds. Default seven days. */
  readonly certificateSeconds?: number
}

const bounds = { what: 'the request of an agent', maxBytes: 16 * 1024, maxMs: 10_000 }
/** Requests that may be under way at a time. */
const maxUnderWay = 32
/** Certificates that a member may get at once, and how many more each second: a write of its MemberCluster each. */
const issues = { burst: 6, perSecond: 1 / 30 }
/** How often a write that lost against another one is repeated, and the longest wait before it, milliseconds. */
const [maxAttempts, maxWaitMs] = [8, 100]
const defaultSeconds = 7 * 24 * 60 * 60
const tokenPattern = /^Bearer ([A-Za-z0-9_.-]{16,256})$/

export class Enrolment {
  readonly #options: EnrolmentOptions
  readonly #identities: AgentIdentities
  /** By address: proofs that were worth nothing. */
  readonly #guesses: FailureBudget
  /** By member: certificates. */
  readonly #issues: FailureBudget
  #underWay = 0

  constructor(options: EnrolmentOptions) {
    const { pki, clock } = options
    this.#options = options
    this.#identities = createAgentIdentities(pki.clientCa, { clock })
    this.#guesses = new FailureBudget({ clock })
    this.#issues = new FailureBudget({ clock, ...issues })
  }

  /**
   * 201 with a certificate, or 202 while an admin has to approve the key. Rejects with a StatusError: 401 without a
   * proof that counts, 403 for another key than before, 409 for a cluster that is another member.
   */
  async answer(name: string, request: IncomingRequest): Promise<BytesResponse> {
    if (request.method !== 'POST') throw methodNotServed()
    const proof = await this.#requireProof(name, request)
    if (this.#underWay >= maxUnderWay) throw tooManyRequests('too many agents ask at a time, please try again')
    this.#underWay++
    try {
      return await this.#answer(name, proof, request)
    } finally {
      this.#underWay--
    }
  }

  /** Refuses clients that have no proof for this member, before anything that they send is read. */
  async #requireProof(name: string, request: IncomingRequest): Promise<AgentProof> {
    const { members } = this.#options
    const proof = this.#proofOf(request)
    // Our authority has signed a certificate: it is no guess, and must not be refused because of those of others.
    const isSigned = proof?.kind === 'certificate' || proof?.kind === 'expired'
    const giveBack = isSigned ? undefined : this.#guesses.spend(request.peerAddress?.() ?? '')
    if (proof === undefined || !isAgentMemberName(name)) throw unauthorized()
    await members.synced(request.signal)
    const verdict = this.#decide({ name, key: '', claims: {}, proof }, members.store.get(name))
    if (verdict.do === 'refuse' && verdict.isGuess) throw verdict.error
    giveBack?.()
    return proof
  }

  async #answer(name: string, proof: AgentProof, request: IncomingRequest): Promise<BytesResponse> {
    const { request: text, claims } = await readSmallJson(request, bounds)
    const { fingerprint: key, publicKey } = await readSigningRequest(typeof text === 'string' ? text : '', name)
    const asked: AskedCertificate = { name, key, proof, claims: claimsOf(claims) }
    const member = this.#options.members.store.get(name)
    const verdict = this.#decide(asked, member)
    if (verdict.do === 'refuse') throw verdict.error
    request.known?.()
    if (verdict.do === 'wait' && isAsked(member?.status?.agent, verdict.agent)) return waiting(verdict.agent)
    // Each certificate is a write, and nothing gives this back.
    this.#issues.spend(name)
    return await this.#write(asked, publicKey, request.signal)
  }

  #decide(asked: AskedCertificate, member: DeepReadonly<MemberCluster> | undefined): Verdict {
    return decide(asked, member, this.#options.members.store.list(), this.#options.clock.now())
  }

  /** Decides on the present MemberCluster, and writes; again if somebody else has written it meanwhile. */
  async #write(asked: AskedCertificate, publicKey: Uint8Array, signal: AbortSignal): Promise<BytesResponse> {
    const { client } = this.#options
    for (let attempt = 1; ; attempt++) {
      const member = await client.get<MemberCluster>(memberClusters, { name: asked.name }, { signal })
      const verdict = this.#decide(asked, member)
      if (verdict.do === 'refuse') throw verdict.error
      try {
        return await this.#settle(member, verdict, { publicKey, fingerprint: asked.key }, signal)
      } catch (error) {
        if (!isStatusError(error, 'Conflict') || attempt >= maxAttempts) throw error
        await sleep(Math.random() * maxWaitMs, signal)
      }
    }
  }

  async #settle(
    member: MemberCluster,
    verdict: Exclude<Verdict, { do: 'refuse' }>,
    { publicKey, fingerprint: key }: AgentKey,
    signal: AbortSignal,
  ): Promise<BytesResponse> {
    if (verdict.do === 'wait') {
      await this.#setAgent(member, verdict.agent, signal)
      return waiting(verdict.agent)
    }
    const { pki, clock, certificateSeconds: seconds = defaultSeconds } = this.#options
    const { name, uid = '' } = member.metadata
    const certificate = await pki.signAgentKey({ member: name, uid, publicKey, seconds })
    const expires = timestamp(clock.now() + seconds * 1000)
    const issued = { fingerprint: certificateFingerprint(certificate), expires, key }
    const certificates = withIssued(verdict.agent, issued)
    await this.#setAgent(member, { ...verdict.agent, certificates }, signal)
    return jsonDocument({ certificate, expires }, { status: 201 })
  }

  /** Rejects with Conflict if the MemberCluster has changed since it was read. */
  async #setAgent({ metadata, status }: MemberCluster, agent: AgentStatus, signal: AbortSignal): Promise<void> {
    const { name, resourceVersion } = metadata
    // A merge patch keeps fields that it does not name.
    const gone = Object.fromEntries(Object.keys(status?.agent ?? {}).map((field) => [field, null]))
    const patch = { metadata: { resourceVersion }, status: { agent: { ...gone, ...agent } } }
    await this.#options.client.patch(memberClusters, { name }, 'merge', patch, { subresource: 'status', signal })
  }

  /** A token counts before a certificate: an agent whose certificate was revoked joins with a new token. */
  #proofOf({ rawHeaders, peerCertificate }: IncomingRequest): AgentProof | undefined {
    const authorization = headerOf(rawHeaders, 'authorization')
    if (authorization !== undefined) {
      const token = tokenPattern.exec(authorization)?.[1]
      return token === undefined ? undefined : { kind: 'token', hash: createHash('sha256').update(token).digest('hex') }
    }
    const agent = this.#identities.agentOf(peerCertificate)
    if (agent !== undefined) return { kind: 'certificate', agent }
    const expired = this.#identities.expiredAgentOf(peerCertificate)
    return expired && { kind: 'expired', agent: expired }
  }
}

/** Whether the MemberCluster says already that the agent waits. */
function isAsked(known: DeepReadonly<AgentStatus> | undefined, next: AgentStatus): boolean {
  const isSame = known?.token === next.token && known?.key === next.key
  return isSame && known?.readmission?.certificate === next.readmission?.certificate
}

/** The certificate that is in use stays, however often an agent asks for others and loses them. */
function withIssued({ certificates = [], used }: AgentStatus, issued: AgentCertificate): AgentCertificate[] {
  const all = [...certificates, issued]
  const over = Math.max(0, all.length - maxAgentCertificates)
  const dropped = new Set(all.filter(({ fingerprint }) => fingerprint !== used).slice(0, over))
  return all.filter((one) => !dropped.has(one))
}

function waiting(agent: AgentStatus): BytesResponse {
  const { readmission } = agent
  const key = agentKeyOf(agent, readmission?.certificate) ?? ''
  const asked = readmission?.askedAt ?? agent.askedAt ?? ''
  const message = `an admin has to approve the key ${key}, which asked first at ${asked}`
  return jsonDocument({ reason: 'WaitingForApproval', message }, { status: 202, headers: { 'retry-after': '5' } })
}

/** Claims are shown to admins: short, printable, and nothing but text. */
function claimsOf(value: unknown): AgentClaims {
  const { kubernetesVersion, kubeSystemUID, agentVersion } = (value ?? {}) as Record<string, unknown>
  const text = (claim: unknown): string | undefined =>
    typeof claim === 'string' && claim.length <= maxClaim && /^[\x21-\x7e]+$/.test(claim) ? claim : undefined
  const claims = {
    kubernetesVersion: text(kubernetesVersion),
    kubeSystemUID: text(kubeSystemUID),
    agentVersion: text(agentVersion),
  }
  return Object.fromEntries(Object.entries(claims).filter(([, claim]) => claim !== undefined))
}
