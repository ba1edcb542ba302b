import { expect } from 'chai'
import type { AgentGrant, AgentStatus, MemberCluster } from '#crds/index.ts'
import { decide, type AgentProof, type AskedCertificate, type Verdict } from './decide.ts'

const nowMs = Date.parse('2026-01-01T12:00:00Z')
const at = (hours: number): string => new Date(nowMs + hours * 3_600_000).toISOString()
const [hash, otherHash] = ['a'.repeat(64), 'b'.repeat(64)]
const uid = '11111111-2222-4333-8444-555555555555'
const certificate = { fingerprint: 'f1', expires: at(24) }
const token = { hash, expires: at(1) }
const byToken: AgentProof = { kind: 'token', hash }
const renewal = (more: object = {}): AgentProof => ({
  kind: 'certificate',
  agent: { member: 'eu-1', uid, fingerprint: 'f1', key: 'k1', expiresMs: nowMs + 1, ...more },
})

const member = (grant: AgentGrant | undefined, agent?: AgentStatus, id?: string): MemberCluster => ({
  apiVersion: 'kcp.dev/v1alpha1',
  kind: 'MemberCluster',
  metadata: { name: 'eu-1', uid },
  spec: { connection: { agent: {} }, ...(grant && { agent: grant }) },
  status: { ...(agent && { agent }), ...(id !== undefined && { id }) },
})
const verdictOf = (
  asked: Partial<AskedCertificate>,
  given: MemberCluster | undefined,
  others: MemberCluster[] = [],
): Verdict => decide({ name: 'eu-1', key: 'k1', claims: {}, proof: byToken, ...asked }, given, others, nowMs)
const codeOf = (verdict: Verdict): number | string => (verdict.do === 'refuse' ? verdict.error.code : verdict.do)

describe('a request of an agent for a certificate', () => {
  const enrolled = { token: hash, key: 'k1', certificates: [certificate] }
  const approved: AgentGrant = { token, approval: { token: hash, key: 'k1' } }

  it('waits for an approval, which the token may be itself', () => {
    const first = verdictOf({}, member({ token }))
    expect(first).to.deep.include({ do: 'wait' })
    expect(first.do === 'wait' && first.agent).to.deep.include({ token: hash, key: 'k1', certificates: [] })
    expect(codeOf(verdictOf({}, member({ token: { ...token, approves: true } })))).to.equal('issue')
    expect(codeOf(verdictOf({}, member(approved, { token: hash, key: 'k1' })))).to.equal('issue')
  })

  it('is refused with another token, for another member, and without a grant, without telling which', () => {
    const answers = [
      verdictOf({ proof: { kind: 'token', hash: otherHash } }, member({ token })),
      verdictOf({ proof: { kind: 'token', hash: '' } }, member({ token })),
      verdictOf({}, undefined),
      verdictOf({}, member(undefined)),
      verdictOf({ name: 'eu-10' }, member({ token })),
      verdictOf({ proof: renewal({ fingerprint: 'f2' }) }, member(approved, enrolled)),
      verdictOf({ proof: renewal() }, member(undefined, enrolled)),
      verdictOf({ proof: renewal() }, member({ token: { hash: otherHash, expires: at(1), approves: true } }, enrolled)),
      verdictOf({ proof: renewal({ uid: uid.replace('1', '2') }) }, member(approved, enrolled)),
      verdictOf({ proof: renewal({ member: 'eu-10' }) }, member(approved, enrolled)),
      verdictOf(
        { proof: renewal() },
        member(approved, { ...enrolled, certificates: [{ fingerprint: 'f1', expires: at(-1) }] }),
      ),
    ]
    for (const [index, answer] of answers.entries()) {
      expect(answer.do === 'refuse' && answer.isGuess, String(index)).to.equal(true)
      expect(answer.do === 'refuse' && answer.error.message).to.equal('Unauthorized')
    }
  })

  it('refuses a token that is over', () => {
    for (const expires of [at(-1), at(0), 'never', ''])
      expect(codeOf(verdictOf({}, member({ token: { ...token, expires, approves: true } }))), expires).to.equal(401)
  })

  it('refuses a token that lives longer than 24 hours', () => {
    expect(codeOf(verdictOf({}, member({ token: { ...token, expires: at(24), approves: true } })))).to.equal('issue')
    for (const expires of [at(25), '9999-12-31T23:59:59Z'])
      expect(codeOf(verdictOf({}, member({ token: { ...token, expires, approves: true } }))), expires).to.equal(401)
  })

  it('is refused for another key once a key has used the token, also while the token is the approval', () => {
    for (const grant of [{ token }, { token: { ...token, approves: true } }, approved]) {
      expect(codeOf(verdictOf({ key: 'k2' }, member(grant, { token: hash, key: 'k1' })))).to.equal(403)
      expect(codeOf(verdictOf({ key: 'k2' }, member(grant, enrolled)))).to.equal(403)
    }
  })

  it('begins again with another token: certificates of before count no more', () => {
    const grant = { token: { ...token, approves: true } }
    const verdict = verdictOf({ key: 'k2' }, member(grant, { ...enrolled, token: otherHash }))
    expect(verdict.do === 'issue' && verdict.agent).to.deep.include({ token: hash, key: 'k2', certificates: [] })
  })

  it('is renewed for another key, too, and keeps the certificates that are not over', () => {
    expect(codeOf(verdictOf({ proof: renewal(), key: 'k2' }, member(approved, enrolled)))).to.equal('issue')
    const certificates = [{ fingerprint: 'f0', expires: at(-1) }, certificate]
    const verdict = verdictOf({ proof: renewal() }, member(approved, { ...enrolled, certificates }))
    expect(verdict.do === 'issue' && verdict.agent.certificates).to.deep.equal([certificate])
    expect(verdict.do === 'issue' && verdict.agent.used).to.equal('f1')
  })

  it('is not renewed for a certificate once the agent has used a newer one', () => {
    const certificates = [certificate, { fingerprint: 'f2', expires: at(48), key: 'k2' }]
    const at2 = (used: string) => member(approved, { ...enrolled, certificates, used })
    expect(codeOf(verdictOf({ proof: renewal() }, at2('f1')))).to.equal('issue')
    expect(codeOf(verdictOf({ proof: renewal() }, at2('f2')))).to.equal(401)
    expect(codeOf(verdictOf({ proof: renewal({ fingerprint: 'f2', key: 'k2' }) }, at2('f1')))).to.equal('issue')
  })

  describe('with a certificate that has expired', () => {
    const day = 24
    const over = { fingerprint: 'f1', expires: at(-3 * day), key: 'k1' }
    const known: AgentStatus = { token: hash, key: 'k0', certificates: [over], used: 'f1' }
    const grant: AgentGrant = { token, approval: { token: hash, key: 'k0' } }
    const proof = (more: object = {}): AgentProof => ({ ...renewal(more), kind: 'expired' }) as AgentProof
    const ask = (agent: AgentStatus, given: AgentGrant = grant, more: Partial<AskedCertificate> = {}): Verdict =>
      verdictOf({ proof: proof(), ...more }, member(given, agent))

    it('waits for an admin, keeps the certificate, and issues once for it', () => {
      const first = ask(known)
      expect(first.do === 'wait' && first.agent.readmission).to.deep.equal({
        certificate: 'f1',
        askedAt: at(0).replace('.000', ''),
      })
      const asked: AgentStatus = first.do === 'wait' ? first.agent : {}
      expect(asked.certificates).to.deep.equal([over])
      expect(ask(asked)).to.deep.equal(first)
      const readmitted = { ...grant, approval: { token: hash, key: 'k0', certificate: 'f1' } }
      const issued = ask(asked, readmitted)
      expect(issued.do === 'issue' && issued.agent.readmission).to.equal(undefined)
      const after = [over, { fingerprint: 'f2', expires: at(7 * day), key: 'k1' }]
      expect(codeOf(ask({ ...known, certificates: after, used: 'f2' }, readmitted))).to.equal(401)
    })

    it('is refused for another key, after 90 days, without a grant, and as a stranger for all that is not exactly it', () => {
      const approvals = [
        undefined,
        { token: hash, key: 'k0', certificate: 'f9' },
        { token: otherHash, key: 'k0', certificate: 'f1' },
      ]
      expect(
        approvals.map((approval) =>
          codeOf(
            ask(
              { ...known, readmission: { certificate: 'f1', askedAt: at(0) } },
              { token, ...(approval && { approval }) },
            ),
          ),
        ),
      ).to.deep.equal([401, 'wait', 401])
      expect(codeOf(ask(known, grant, { key: 'k2' }))).to.equal(403)
      const old = { ...over, expires: at(-91 * day) }
      expect(codeOf(ask({ ...known, certificates: [old] }))).to.equal(403)
      expect(codeOf(ask({ ...known, certificates: [{ ...old, expires: at(-89 * day) }] }))).to.equal('wait')
      expect(codeOf(verdictOf({ proof: proof() }, member(undefined, known)))).to.equal(401)
      for (const other of [{ member: 'eu-10' }, { uid: uid.replace('1', '2') }, { fingerprint: 'f2' }])
        expect(codeOf(ask(known, grant, { proof: proof(other) }))).to.equal(401)
    })
  })

  it('is refused for a cluster that is another member, and for another cluster than the registered one', () => {
    const grant = { token: { ...token, approves: true } }
    const other = { ...member(undefined, undefined, 'u1'), metadata: { name: 'other', uid } }
    expect(codeOf(verdictOf({ claims: { kubeSystemUID: 'u1' } }, member(grant), [other]))).to.equal(409)
    expect(codeOf(verdictOf({ claims: { kubeSystemUID: 'u2' } }, member(grant, undefined, 'u1')))).to.equal(409)
    expect(codeOf(verdictOf({ claims: {} }, member(grant, undefined, 'u1')))).to.equal(409)
    expect(codeOf(verdictOf({ claims: { kubeSystemUID: 'u1' } }, member(grant, undefined, 'u1')))).to.equal('issue')
  })

  it('is refused while the MemberCluster is being deleted, where a renewal is not: the member drains', () => {
    const deleting = (given: MemberCluster): MemberCluster => ({
      ...given,
      metadata: { ...given.metadata, deletionTimestamp: at(0) },
    })
    expect(codeOf(verdictOf({}, deleting(member({ token }))))).to.equal(409)
    expect(codeOf(verdictOf({ proof: renewal() }, deleting(member(approved, enrolled))))).to.equal('issue')
  })
})
