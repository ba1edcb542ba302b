import { expect } from 'chai'
import type { AgentGrant, AgentStatus, MemberCluster } from '#crds/index.ts'
import { agentRefusal } from './agent-state.ts'

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
    expect(refusalOf({ token: { hash, expires: earlier, approves: true } }, over)).to.match(
      /^CertificateExpired: .*--pull/,
    )
  })

  it('is another version, where the tunnel was refused for that', () => {
    const refused = { reason: 'AgentTooOld', message: 'the agent (0.0.1) speaks version 0 of the tunnel' } as const
    const agent = { ...asked, certificates: [{ fingerprint: 'f', expires: later }], tunnel: { refused } }
    expect(refusalOf({ token: { hash, expires: earlier, approves: true } }, agent)).to.match(/^AgentTooOld: .*0\.0\.1/)
  })

  it('is nothing for an agent that may connect', () => {
    const valid = { ...asked, certificates: [{ fingerprint: 'f', expires: later }] }
    expect(refusalOf({ token: { hash, expires: earlier, approves: true } }, valid)).to.equal('none: ')
  })
})
