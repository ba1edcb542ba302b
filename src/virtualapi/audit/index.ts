export { auditIdOf, RequestAudit, type AuditSink, type Named } from './request-audit.ts'
