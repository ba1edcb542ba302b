// Validation of match conditions of webhooks and admission policies.
import type { V1MatchCondition } from '@kubernetes/client-node'
import { fieldDuplicate, fieldRequired, fieldTooMany } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import {
  compileAdmissionExpression,
  conditionTypes,
  expressionCauses,
} from '#virtualapi/kinds/admission-expressions/index.ts'
import { qualifiedName } from './values.ts'

const mostConditions = 64

/** Validation errors of a list of match conditions. `stored`: expressions that were there before. */
export function matchConditionCauses(
  path: string,
  conditions: readonly Data<V1MatchCondition>[],
  { hasParams = false, stored }: { hasParams?: boolean; stored: ReadonlySet<string> },
): StatusCause[] {
  const names = new Set<string>()
  const causes = conditions.length > mostConditions ? [fieldTooMany(path, conditions.length, mostConditions)] : []
  for (const [index, { name, expression }] of conditions.entries()) {
    const at = `${path}[${index}]`
    if (expression.trim() === '') causes.push(fieldRequired(`${at}.expression`))
    else {
      const scope = { hasParams, hasAuthorizer: true, stored: stored.has(expression) }
      const compiled = compileAdmissionExpression(expression, conditionTypes, scope)
      causes.push(...expressionCauses(`${at}.expression`, expression, compiled))
    }
    if (name === '') {
      causes.push(fieldRequired(`${at}.name`))
      continue
    }
    causes.push(...qualifiedName(`${at}.name`, name))
    if (names.has(name)) causes.push(fieldDuplicate(`${at}.name`, name))
    names.add(name)
  }
  return causes
}
