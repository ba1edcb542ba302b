// matchConditions of webhooks: CEL expressions that all must be true for the webhook to be called.
import { LRUCache } from 'lru-cache'
import {
  compileExpression,
  dynamicValue,
  dynType,
  extendEnvironment,
  kubernetesEnvironment,
  Program,
  type CompileFailure,
} from '../../apimachinery/cel/index.ts'
import type { JsonObject, JsonValue } from '../../apimachinery/meta/index.ts'
import { forbidden } from '../../apimachinery/status/index.ts'
import { admissionRequest, type Shown } from './admission-review.ts'
import type { MatchCondition, Webhook } from './webhook-configurations.ts'

/** Whether all matchConditions hold. Throws 403 if one cannot be evaluated and the webhook fails closed. */
export type ConditionsHold = (webhook: Webhook, shown: Shown) => boolean

const environment = extendEnvironment(kubernetesEnvironment(), {
  variables: { object: dynType, oldObject: dynType, request: dynType },
})
const programs = new LRUCache<string, Program | CompileFailure>({ max: 2000 })
/** Cost of all conditions of one webhook together, as in kube-apiserver. */
const costBudget = 2_500_000

/** A condition that is false decides; else one that failed does, by failurePolicy. The authorizer is not among the variables. */
export const conditionsHold: ConditionsHold = (webhook, shown) => {
  const variables = new Map(Object.entries(variablesOf(shown)).map(([name, json]) => [name, dynamicValue(json)]))
  const errors: string[] = []
  let budget = costBudget
  for (const condition of webhook.matchConditions) {
    const program = programOf(condition)
    if (!(program instanceof Program)) {
      errors.push(`compilation error: ${program.message}`)
      continue
    }
    const { value, error, cost } = program.run(variables, { costLimit: budget })
    budget = Math.max(0, budget - cost)
    if (value === false) return false
    if (error !== undefined) errors.push(`expression '${condition.expression}' resulted in error: ${error}`)
    else if (value !== true) errors.push(`expression '${condition.expression}' is not a condition: it gives no bool`)
  }
  const [first] = errors
  if (first === undefined) return true
  if (webhook.failsOpen) return false
  const { definition, name } = shown.request
  throw forbidden(definition.info, name, errors.length === 1 ? first : `[${errors.join(', ')}]`)
}

function programOf({ expression }: MatchCondition): Program | CompileFailure {
  const known = programs.get(expression)
  if (known !== undefined) return known
  const program = compileExpression(expression, environment)
  programs.set(expression, program)
  return program
}

function variablesOf(shown: Shown): Record<string, JsonValue> {
  const { object: _object, oldObject: _old, options, uid: _uid, ...request } = admissionRequest(shown, '')
  return {
    object: (shown.object ?? null) as JsonObject | null,
    oldObject: (shown.old ?? null) as JsonObject | null,
    request: { ...request, options: options ?? null },
  }
}
