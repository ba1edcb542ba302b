// Validation of match conditions of webhooks and admission policies.
import type { V1MatchCondition } from '@kubernetes/client-node'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import {
  compileAdmissionExpression,
  conditionTypes,
  expressionCauses,
} from '#virtualapi/kinds/admission-expressions/index.ts'
import { qualifiedName } from './basic-rules.ts'
import { all, each, fields, maxItems, required, unique } from './vocabulary.ts'

type Condition = Data<V1MatchCondition>

interface Context {
  readonly hasParams?: boolean
  /** Expressions that the webhook or policy had before the write. */
  readonly stored: ReadonlySet<string>
}

const condition = fields<Condition, Context>({
  expression: (expression, report, { hasParams = false, stored }) => {
    if (expression.trim() === '') {
      report.required('')
      return
    }
    const scope = { hasParams, hasAuthorizer: true, stored: stored.has(expression) }
    const compiled = compileAdmissionExpression(expression, conditionTypes, scope)
    report.add(...expressionCauses(report.path(), expression, compiled))
  },
  name: required(all<string>(qualifiedName, unique())),
})

export const matchConditions = all<readonly Condition[] | undefined, Context>(maxItems(64), each(condition))
