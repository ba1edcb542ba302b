import { expect } from 'chai'
import { agentPhase, isApproved, isValidAgentCertificate, type AgentGrant, type AgentStatus } from './member-agent.ts'
import type { MemberCluster, MemberClusterSpec } from './member-cluster.ts'

const now = Date.parse('2026-01-01T12:00:00Z')
const [later, earlier] = ['2026-01-01T13:00:00Z', '2026-01-01T11:00:00Z']
const [hash, otherHash] = ['a'.repeat(64), 'b'.repeat(64)]
const [key, otherKey] = ['SHA256:a', 'SHA256:b']
const token = { hash, expires: later }
const certificate = { fingerprint: 'f1', expires: later }

const memberWith = (
  grant: AgentGrant | undefined,
  known?: AgentStatus,
  connection: MemberClusterSpec['connection'] = { agent: {} },
): MemberCluster => ({
  apiVersion: 'kcp.dev/v1alpha1',
  kind: 'MemberCluster',
  metadata: { name: 'eu-1' },
  spec: { connection, ...(grant && { agent: grant }) },
  ...(known && { status: { agent: known } }),
})

describe('the agent of a member', () => {
  const asked = { token: hash, key }
  const cases: readonly { is: string; grant?: AgentGrant; known?: AgentStatus }[] = [
    { is: 'NotGranted' },
    { is: 'NotGranted', known: { ...asked, certificates: [certificate] } },
    { is: 'WaitingForAgent', grant: { token } },
    { is: 'TokenExpired', grant: { token: { ...token, expires: earlier } } },
    { is: 'WaitingForAgent', grant: { token }, known: { ...asked, token: otherHash, certificates: [certificate] } },
    { is: 'WaitingForApproval', grant: { token }, known: asked },
    { is: 'ApprovalExpired', grant: { token: { ...token, expires: earlier } }, known: asked },
    { is: 'WaitingForApproval', grant: { token, approval: { token: hash, key: otherKey } }, known: asked },
    { is: 'WaitingForApproval', grant: { token, approval: { token: otherHash, key } }, known: asked },
    { is: 'Approved', grant: { token, approval: { token: hash, key } }, known: asked },
    { is: 'Approved', grant: { token: { ...token, approves: true } }, known: asked },
    {
      is: 'Enrolled',
      grant: { token: { ...token, expires: earlier }, approval: { token: hash, key } },
      known: { ...asked, certificates: [certificate] },
    },
    {
      is: 'CertificateExpired',
      grant: { token, approval: { token: hash, key } },
      known: { ...asked, certificates: [{ ...certificate, expires: earlier }] },
    },
  ]
  for (const [index, { is, grant, known }] of cases.entries())
    it(`is ${is} (${index + 1})`, () => expect(agentPhase(memberWith(grant, known), now)).to.equal(is))

  it('is none for a member that is reached by a kubeconfig', () => {
    const connection = { kubeconfigSecretRef: { namespace: 'kcp-system', name: 'member-eu-1' } }
    expect(agentPhase(memberWith(undefined, undefined, connection), now)).to.equal('None')
  })

  it('has no valid certificate but those that were issued, are not over, and whose key is approved', () => {
    const grant = { token, approval: { token: hash, key } }
    const known = { ...asked, certificates: [certificate] }
    const isValid = (given: MemberCluster, fingerprint = 'f1'): boolean =>
      isValidAgentCertificate(given, fingerprint, now)
    expect(isValid(memberWith(grant, known))).to.equal(true)
    expect(isValid(memberWith(grant, known), 'f10')).to.equal(false)
    expect(isValid(memberWith(grant, known), 'F1')).to.equal(false)
    expect(isValid(memberWith(undefined, known))).to.equal(false)
    expect(isValid(memberWith({ token: { hash: otherHash, expires: later, approves: true } }, known))).to.equal(false)
    expect(isValid(memberWith({ token }, known))).to.equal(false)
    expect(isValid(memberWith(grant, { ...known, key: otherKey }))).to.equal(false)
    expect(isValid(memberWith(grant, { ...known, certificates: [{ ...certificate, expires: earlier }] }))).to.equal(
      false,
    )
    expect(isApproved(memberWith({ token, approval: { token: hash, key } }, {}))).to.equal(false)
  })
})
