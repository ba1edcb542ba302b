// Writes the audit events of a request that the stages do not see.
import type { Clock } from '#async/index.ts'
import { headerOf, type IncomingRequest } from './exchange.ts'
import { auditIdOf, RequestAudit, type AuditLog } from './request-audit.ts'
import type { UserInfo } from './user-info.ts'

interface Audited {
  readonly auditLog: AuditLog | undefined
  readonly clock: Clock
}

/** Nothing is written without a log. */
export function auditAnswer(
  request: IncomingRequest,
  { status, user }: { readonly status: number; readonly user: UserInfo | undefined },
  { auditLog, clock }: Audited,
): void {
  if (auditLog === undefined) return
  const { method, url, rawHeaders, peerAddress } = request
  const header = (name: string): string | undefined => headerOf(rawHeaders, name)
  const arrival = { auditId: auditIdOf(header('audit-id')), method, url, header, peerAddress: peerAddress?.() }
  const audit = new RequestAudit(arrival, clock)
  audit.to(auditLog)
  if (user !== undefined) {
    audit.authenticated(user)
    audit.begin({ verb: method.toLowerCase(), path: url.split('?', 1)[0] ?? '' })
  }
  audit.started({ status })
  audit.complete()
}
