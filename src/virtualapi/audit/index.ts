export { auditIdOf, RequestAudit, type AuditSink } from './request-audit.ts'
