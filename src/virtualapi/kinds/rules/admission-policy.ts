// ValidatingAdmissionPolicies, whose expressions must compile, and their bindings.
import type {
  V1ExpressionWarning,
  V1TypeChecking,
  V1ValidatingAdmissionPolicyBindingSpec,
  V1ValidatingAdmissionPolicySpec,
  V1ValidatingAdmissionPolicyStatus,
  V1Validation,
} from '@kubernetes/client-node'
import { byteLength } from '#apimachinery/field/index.ts'
import { conditionTypes } from '#virtualapi/kinds/admission-expressions/index.ts'
import { PolicyCompiler } from '#virtualapi/kinds/admission-expressions/policy-compiler.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { internalText } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { paramKind, policyVariable } from '#virtualapi/kinds/validation/admission-policies.ts'
import { failurePolicy } from '#virtualapi/kinds/validation/admission-rules.ts'
import { objectName, qualifiedName } from '#virtualapi/kinds/validation/basic-rules.ts'
import { conditions } from '#virtualapi/kinds/validation/conditions.ts'
import { matchConditions } from '#virtualapi/kinds/validation/match-conditions.ts'
import { matchConstraints, matchResources } from '#virtualapi/kinds/validation/match-resources.ts'
import { paramRef } from '#virtualapi/kinds/validation/param-ref.ts'
import {
  all,
  causesOf,
  each,
  fields,
  must,
  nonEmpty,
  oneOf,
  optional,
  unique,
  validating,
  validatingSpec,
  type ObjectOf,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import type { KindRules } from './kind-rules.ts'

type Spec = Data<V1ValidatingAdmissionPolicySpec>
type Status = Data<V1ValidatingAdmissionPolicyStatus>
type Annotation = NonNullable<Spec['auditAnnotations']>[number]

interface Context {
  /** The name of the policy. */
  readonly policy: string
  readonly compiler: PolicyCompiler
  readonly hasParams: boolean
  readonly stored: ReadonlySet<string>
}

const mostAnnotations = 20
const longestValueExpression = 5 * 1024

const notBlank = must((text: string) => text === '' || text.trim() !== '', 'must be non-empty if specified')

const validation = fields<Data<V1Validation>, Context>({
  expression: (expression, report, { compiler }) => {
    if (expression.trim() === '') report.required('', 'expression is not specified')
    else report.add(...compiler.causes(report.path(), expression, conditionTypes))
  },
  messageExpression: all<string | undefined, Context>(notBlank, (expression = '', report, { compiler }) => {
    if (expression.trim() !== '') report.add(...compiler.message(report.path(), expression))
  }),
  message: all<string | undefined>(
    notBlank,
    must((message: string) => !/[\n\r]/.test(message.trim()), 'must not contain line breaks'),
  ),
  reason: oneOf(['Forbidden', 'Invalid', 'RequestEntityTooLarge']),
})

const annotation = all<Annotation, Context>(
  ({ key, valueExpression }, report, { policy, compiler }) => {
    const expression = valueExpression.trim()
    report.at('key', qualifiedName, `${policy}/${key}`)
    if (expression === '') report.required('valueExpression', 'valueExpression is not specified')
    else if (byteLength(expression) > longestValueExpression)
      report.required('valueExpression', `must not exceed ${longestValueExpression} bytes in length`)
    else report.add(...compiler.annotation(report.path('valueExpression'), valueExpression))
  },
  unique('key', ({ key }) => key),
)

const outcomes = all<Spec, Context>(
  ({ validations, auditAnnotations }, report) => {
    const detail = 'validations or auditAnnotations must contain at least one item'
    if (validations?.length || auditAnnotations?.length) return
    report.required('validations', detail)
    report.required('auditAnnotations', detail)
  },
  fields<Spec, Context>({ validations: each(validation) }),
  ({ auditAnnotations: list = [] }, report) => {
    if (list.length > mostAnnotations)
      report.invalidText(
        'auditAnnotations',
        listText(list),
        `must not have more than ${mostAnnotations} auditAnnotations`,
      )
  },
  fields<Spec, Context>({ auditAnnotations: each(annotation) }),
)

const specRule = all<Spec, Context>(
  fields<Spec, Context>({
    failurePolicy,
    paramKind,
    matchConstraints,
    matchConditions,
    variables: each(policyVariable),
  }),
  outcomes,
)

const expressionWarning = fields<Data<V1ExpressionWarning>>({
  warning: nonEmpty(),
  fieldRef: (text, report) => {
    if (text.trim() === '') report.required('')
  },
})
const statusRule = fields<Status>({
  typeChecking: optional(fields<Data<V1TypeChecking>>({ expressionWarnings: each(expressionWarning) })),
  conditions,
})

export const admissionPolicyRules: KindRules = {
  validate: validating<ObjectOf<Spec>>(({ metadata, spec }, report, old) => {
    const { variables = [], paramKind: params } = spec
    // As upstream, expressions can name variables only where there are some.
    const composed = { ...(params && { paramKind: params }), ...(variables.length > 0 ? { variables } : {}) }
    const compiler = new PolicyCompiler(composed, old === undefined ? [] : expressionsOf(old.spec))
    const context = { policy: metadata.name ?? '', compiler, hasParams: params !== undefined, stored: compiler.stored }
    report.at('spec', specRule, spec, context)
  }),
  validateSubresource: (object, _old, subresource) =>
    subresource === 'status' ? causesOf(statusRule, 'status', object['status'] as Status) : [],
}

function listText(annotations: readonly Annotation[]): string {
  const texts = annotations.map((one) => internalText('admissionregistration.AuditAnnotation', one))
  return `[${texts.join(',')}]`
}

function expressionsOf({
  variables = [],
  validations = [],
  matchConditions = [],
  auditAnnotations = [],
}: Spec): string[] {
  return [
    ...[...variables, ...validations, ...matchConditions].map(({ expression }) => expression),
    ...validations.map(({ messageExpression = '' }) => messageExpression),
    ...auditAnnotations.map(({ valueExpression }) => valueExpression),
  ]
}

type BindingSpec = Data<V1ValidatingAdmissionPolicyBindingSpec>

const both =
  'must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)'

const bindingRule = fields<BindingSpec>({
  policyName: objectName,
  paramRef,
  matchResources,
  validationActions: all<string[] | undefined>(
    each(all<string>(oneOf(['Audit', 'Deny', 'Warn']), unique())),
    (list, report) => {
      if (list?.includes('Deny') && list.includes('Warn')) report.invalid('', list, both)
    },
    nonEmpty('at least one validation action is required'),
  ),
})

export const admissionPolicyBindingRules: KindRules = {
  validate: validatingSpec(bindingRule),
}
