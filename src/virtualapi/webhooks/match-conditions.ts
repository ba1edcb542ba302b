// matchConditions of webhooks: CEL expressions that all must be true for the webhook to be called.
import { forbidden } from '../../apimachinery/status/index.ts'
import type { Shown } from './admission-review.ts'
import type { Webhook } from './webhook-configurations.ts'

/** Whether all matchConditions hold. Throws 403 if one cannot be evaluated and the webhook fails closed. */
export type ConditionsHold = (webhook: Webhook, shown: Shown) => boolean | Promise<boolean>

/** Without a CEL engine no condition can be evaluated: failurePolicy decides. */
export const conditionsHold: ConditionsHold = (webhook, { request }) => {
  if (webhook.failsOpen) return false
  throw forbidden(request.definition.info, request.name, 'matchConditions cannot be evaluated: CEL is not supported')
}
