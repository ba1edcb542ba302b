// Validation of match conditions of webhooks and admission policies. The CEL expressions are not compiled.
import type { V1MatchCondition } from '@kubernetes/client-node'
import { fieldDuplicate, fieldRequired, fieldTooMany } from '../../../apimachinery/field/index.ts'
import type { StatusCause } from '../../../apimachinery/status/index.ts'
import type { Data } from '../../resources/typed/data.ts'
import { qualifiedName } from './values.ts'

const mostConditions = 64

/** Validation errors of a list of match conditions. */
export function matchConditionCauses(path: string, conditions: readonly Data<V1MatchCondition>[]): StatusCause[] {
  const names = new Set<string>()
  const causes = conditions.length > mostConditions ? [fieldTooMany(path, conditions.length, mostConditions)] : []
  for (const [index, { name, expression }] of conditions.entries()) {
    const at = `${path}[${index}]`
    if (expression.trim() === '') causes.push(fieldRequired(`${at}.expression`))
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
