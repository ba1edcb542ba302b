// Condition AuditDelivered of a LogicalCluster with spec.audit.webhook: there and False while the webhook fails. The
// operator writes an Event about it, and removes the condition of a LogicalCluster without a webhook.
import { timestamp } from '#async/index.ts'
import { auditDelivered, type ConditionUpdate } from '#crds/index.ts'
import type { WebhookFailure } from '#virtualapi/audit/index.ts'
import { maxMessage } from './condition-reports.ts'

export function auditCondition(failure: WebhookFailure | undefined): ConditionUpdate | undefined {
  if (failure === undefined) return undefined
  const { sinceMs, problem } = failure
  const message = `spec.audit.webhook has taken no events since ${timestamp(sinceMs)}, and those that do not fit into the buffer are lost: ${problem}`
  return { type: auditDelivered, status: 'False', reason: 'WebhookFailing', message: message.slice(0, maxMessage) }
}
