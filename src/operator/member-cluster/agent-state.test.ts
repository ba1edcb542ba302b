import { expect } from 'chai'
import type { AgentGrant, AgentStatus, MemberCluster } from '#crds/index.ts'
import { agentCertificate, agentRefusal } from './agent-state.ts'

const nowMs = Date.parse('2026-01-01T12:00:00Z')
const [later, earlier] = ['2026-01-01T13:00:00Z', '2026-01-01T11:00:00Z']
const hash = 'a'.repeat(64)
const asked: AgentStatus = { token: hash, key: 'SHA256:k', askedAt: earlier }

const refusalOf = (grant: AgentGrant | undefined, agent?: AgentStatus): string => {
  const member: MemberCluster = {
    apiVersion: 'kcp.dev/v1alpha1',
    kind: 'MemberCluster',
    metadata: { name: 'lab' },
    spec: { connection: { agent: {} }, ...(grant && { agent: grant }) },
    ...(agent && { status: { agent } }),
  }
  const { reason, message } = agentRefusal(member, nowMs) ?? { reason: 'none', message: '' }
  return `${reason}: ${message}`
}

describe('what the agent of a member waits for', () => {
  it('is told with the time since when or until when, and the command that helps', () => {
    expect(refusalOf({ token: { hash, expires: later } })).to.match(
      /^WaitingForAgent: .* until 2026-01-01T13:00:00Z.*apply/,
    )
    expect(refusalOf({ token: { hash, expires: earlier } })).to.match(/^TokenExpired: .* at 2026-01-01T11.*--pull/)
    expect(refusalOf({ token: { hash, expires: later } }, asked)).to.match(
      /^WaitingForApproval: .*SHA256:k asks since 2026-01-01T11:00:00Z: kcp member approve lab/,
    )
    expect(refusalOf({ token: { hash, expires: earlier } }, asked)).to.match(/^ApprovalExpired: .*SHA256:k.*--pull/)
    expect(refusalOf(undefined, asked)).to.match(/^NotGranted: .*--pull/)
    const over = { ...asked, certificates: [{ fingerprint: 'f', expires: earlier }] }
    const grant = { token: { hash, expires: earlier, approves: true } }
    expect(refusalOf(grant, over)).to.match(
      /^CertificateExpired: .* at 2026-01-01T11:00:00Z.* kcp member approve lab .* for another 89 days; later: .*--pull/,
    )
    const longOver = { ...asked, certificates: [{ fingerprint: 'f', expires: '2025-09-01T00:00:00Z' }] }
    expect(refusalOf(grant, longOver)).to.match(/^CertificateExpired: .* for too long: kcp member join lab --pull/)
    const back = { ...over, readmission: { certificate: 'f', askedAt: later } }
    expect(refusalOf(grant, back)).to.match(
      /^WaitingForReadmission: .* since 2026-01-01T13:00:00Z with the key SHA256:k: kcp member approve lab/,
    )
  })

  it('is another version, where the tunnel was refused for that', () => {
    const refused = { reason: 'AgentTooOld', message: 'the agent (0.0.1) speaks version 0 of the tunnel' } as const
    const agent = { ...asked, certificates: [{ fingerprint: 'f', expires: later }], tunnel: { refused } }
    expect(refusalOf({ token: { hash, expires: earlier, approves: true } }, agent)).to.match(/^AgentTooOld: .*0\.0\.1/)
  })

  it('is told in days before the certificate expires', () => {
    const told = (expires: string): string => {
      const certificates = [
        { fingerprint: 'f0', expires: earlier },
        { fingerprint: 'f', expires },
      ]
      const spec = { connection: { agent: {} }, agent: { token: { hash, expires: earlier, approves: true } } }
      const status = { agent: { ...asked, certificates } }
      const object: MemberCluster = {
        ...{ apiVersion: 'kcp.dev/v1alpha1', kind: 'MemberCluster', metadata: { name: 'lab' }, spec, status },
      }
      const { status: is = '', reason = '', message = '' } = agentCertificate(object, nowMs) ?? {}
      return `${is} ${reason}: ${message}`
    }
    expect(told('2026-01-08T12:00:00Z')).to.match(/^True Valid: .* until 2026-01-08T12:00:00Z, for 7 days; /)
    expect(told('2026-01-03T11:00:00Z')).to.match(/^True NotRenewed: .* for 1 day, and the agent has not renewed it/)
    expect(told(later)).to.match(/^True NotRenewed: .* for less than a day/)
    expect(told(earlier)).to.match(/^False CertificateExpired: .*kcp member approve lab/)
  })

  it('is nothing for an agent that may connect', () => {
    const valid = { ...asked, certificates: [{ fingerprint: 'f', expires: later }] }
    expect(refusalOf({ token: { hash, expires: earlier, approves: true } }, valid)).to.equal('none: ')
  })
})
