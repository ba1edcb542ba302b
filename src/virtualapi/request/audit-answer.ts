// Writes the audit line of a request that the stages do not see.
import type { Clock } from '#async/index.ts'
import { headerOf, type IncomingRequest } from './exchange.ts'
import { auditIdOf, RequestAudit, type AuditSink } from './request-audit.ts'
import type { UserInfo } from './user-info.ts'

interface Audited {
  readonly auditSink: AuditSink | undefined
  readonly clock: Clock
}

/** Nothing is written without a sink. */
export function auditAnswer(
  request: IncomingRequest,
  { status, user }: { readonly status: number; readonly user: UserInfo | undefined },
  { auditSink: sink, clock }: Audited,
): void {
  if (sink === undefined) return
  const { method, url, rawHeaders, peerAddress } = request
  const header = (name: string): string | undefined => headerOf(rawHeaders, name)
  const arrival = { auditId: auditIdOf(header('audit-id')), method, url, header, peerAddress: peerAddress?.() }
  const audit = new RequestAudit(arrival, { sink, clock })
  if (user !== undefined) audit.authenticated(user)
  audit.started({ status })
  audit.complete()
}
