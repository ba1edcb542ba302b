// matchConditions of webhooks: CEL expressions. The webhook is called only if all of them are true.
import { LRUCache } from 'lru-cache'
import { Program } from '#apimachinery/cel/index.ts'
import { aggregateText } from '#apimachinery/field/index.ts'
import { forbidden } from '#apimachinery/status/index.ts'
import type { Shown } from '#virtualapi/write/admission/shown.ts'
import { boundedAuthorizer } from '#virtualapi/write/admission/provider-admission.ts'
import type { Authorizer } from '#virtualapi/auth/authz/index.ts'
import {
  compileAdmissionExpression,
  conditionTypes,
  type ExpressionFailure,
} from '#virtualapi/kinds/admission-expressions/index.ts'
import { withAuthorizer } from '#virtualapi/write/policies/ask-authorizer.ts'
import { chargedTo, type Spent } from '#virtualapi/write/policies/expression-costs.ts'
import { requestVariables, withAuthorizerVariables } from '#virtualapi/write/policies/policy-input.ts'
import type { MatchCondition, Webhook } from './webhook-configurations.ts'

type Compiled = Program | ExpressionFailure
type Variables = ReturnType<typeof withAuthorizerVariables>

// The size of an entry is the length of its source, of which a condition may have 100,000 characters. A compiled
// character takes some 120 bytes.
const programs = new LRUCache<string, Compiled>({ max: 2000, maxSize: 1024 * 1024 })
const scope = { hasParams: false, hasAuthorizer: true, stored: true }
/** Cost of all conditions of one webhook together, as in kube-apiserver. */
const costBudget = 2_500_000

/**
 * Resolves with true if all matchConditions are true. Rejects with 403 if a condition cannot be evaluated and the
 * webhook fails closed.
 */
export async function conditionsHold(
  webhook: Webhook,
  shown: Shown,
  authorizer: Pick<Authorizer, 'authorize'>,
): Promise<boolean> {
  // As upstream, `namespaceObject` is null in conditions.
  const variables = requestVariables(shown, undefined)
  const { context } = shown.request
  const { provider } = webhook
  const decides = provider === undefined ? authorizer : boundedAuthorizer(authorizer, provider)
  const outcome = await withAuthorizer(decides, shown.request, (asked) =>
    evaluate(webhook.matchConditions, withAuthorizerVariables(variables, shown, asked), chargedTo(context)),
  )
  await context.turn?.()
  if (typeof outcome === 'boolean') return outcome
  if (webhook.failsOpen) return false
  const { definition, name } = shown.request
  throw forbidden(definition.info, name, aggregateText(outcome))
}

/** False if a condition is false, true if all are true; otherwise the error messages. */
function evaluate(conditions: readonly MatchCondition[], variables: Variables, spent: Spent): boolean | string[] {
  const errors: string[] = []
  let budget = costBudget
  for (const condition of conditions) {
    const program = programOf(condition)
    if (!(program instanceof Program)) {
      errors.push(`compilation error: ${program.message}`)
      continue
    }
    const { value, error, cost } = program.run(variables, { costLimit: budget, spent })
    budget = Math.max(0, budget - cost)
    if (value === false) return false
    if (error !== undefined) errors.push(`expression '${condition.expression}' resulted in error: ${error}`)
  }
  return errors.length === 0 ? true : errors
}

function programOf({ expression }: MatchCondition): Compiled {
  let program = programs.get(expression)
  if (program === undefined) {
    program = compileAdmissionExpression(expression, conditionTypes, scope)
    programs.set(expression, program, { size: expression.length + 1 })
  }
  return program
}
