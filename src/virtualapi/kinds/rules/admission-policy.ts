// ValidatingAdmissionPolicy: its members, and that its expressions compile.
import type {
  V1ValidatingAdmissionPolicySpec,
  V1ValidatingAdmissionPolicyStatus,
  V1Validation,
} from '@kubernetes/client-node'
import { byteLength, fieldDuplicate, fieldInvalid, fieldRequired } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { failurePolicies } from '#virtualapi/kinds/validation/admission-rules.ts'
import { conditionsCauses } from '#virtualapi/kinds/validation/conditions.ts'
import { conditionTypes } from '#virtualapi/kinds/admission-expressions/index.ts'
import { PolicyCompiler } from '#virtualapi/kinds/admission-expressions/policy-compiler.ts'
import { internalText } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { paramKindCauses, variableCauses } from '#virtualapi/kinds/validation/admission-policies.ts'
import { matchConditionCauses } from '#virtualapi/kinds/validation/match-conditions.ts'
import { matchConstraintsCauses } from '#virtualapi/kinds/validation/match-resources.ts'
import { qualifiedName, supported } from '#virtualapi/kinds/validation/values.ts'

type Spec = Data<V1ValidatingAdmissionPolicySpec>
type Annotation = NonNullable<Spec['auditAnnotations']>[number]

const reasons = ['Forbidden', 'Invalid', 'RequestEntityTooLarge']
const mostAnnotations = 20
const longestValueExpression = 5 * 1024

export const admissionPolicyRules: KindRules = {
  validate(object, old) {
    const spec = object['spec'] as Spec
    const before = old?.['spec'] as Spec | undefined
    const { variables = [], paramKind } = spec
    // As upstream, expressions can name variables only where there are some.
    const composed = { ...(paramKind && { paramKind }), ...(variables.length > 0 ? { variables } : {}) }
    const compiler = new PolicyCompiler(composed, before === undefined ? [] : expressionsOf(before))
    const hasParams = spec.paramKind !== undefined
    return [
      ...supported('spec.failurePolicy', spec.failurePolicy, failurePolicies),
      ...paramKindCauses('spec.paramKind', spec.paramKind),
      ...matchConstraintsCauses('spec.matchConstraints', spec.matchConstraints),
      ...matchConditionCauses('spec.matchConditions', spec.matchConditions ?? [], {
        hasParams,
        stored: compiler.stored,
      }),
      ...(spec.variables ?? []).flatMap((variable, index) =>
        variableCauses(`spec.variables[${index}]`, variable, compiler),
      ),
      ...outcomeCauses(object.metadata.name ?? '', spec, compiler),
    ]
  },
  validateSubresource(object, _old, subresource) {
    if (subresource !== 'status') return []
    const { typeChecking, conditions = [] } = object['status'] as Data<V1ValidatingAdmissionPolicyStatus>
    return [
      ...(typeChecking?.expressionWarnings ?? []).flatMap(({ warning, fieldRef }, index) => {
        const at = `status.typeChecking.expressionWarnings[${index}]`
        return [
          ...(warning === '' ? [fieldRequired(`${at}.warning`)] : []),
          ...(fieldRef.trim() === '' ? [fieldRequired(`${at}.fieldRef`)] : []),
        ]
      }),
      ...conditionsCauses('status.conditions', conditions),
    ]
  },
}

function outcomeCauses(
  policy: string,
  { validations = [], auditAnnotations = [] }: Spec,
  compiler: PolicyCompiler,
): StatusCause[] {
  const oneOf = 'validations or auditAnnotations must contain at least one item'
  if (validations.length === 0 && auditAnnotations.length === 0)
    return [fieldRequired('spec.validations', oneOf), fieldRequired('spec.auditAnnotations', oneOf)]
  return [
    ...validations.flatMap((validation, index) => validationCauses(`spec.validations[${index}]`, validation, compiler)),
    ...annotationsCauses('spec.auditAnnotations', policy, auditAnnotations, compiler),
  ]
}

function validationCauses(
  path: string,
  { expression, message = '', messageExpression = '', reason }: Data<V1Validation>,
  compiler: PolicyCompiler,
): StatusCause[] {
  const blank = (member: string, text: string): StatusCause[] =>
    text !== '' && text.trim() === '' ? [fieldInvalid(`${path}.${member}`, text, 'must be non-empty if specified')] : []
  return [
    ...(expression.trim() === ''
      ? [fieldRequired(`${path}.expression`, 'expression is not specified')]
      : compiler.causes(`${path}.expression`, expression, conditionTypes)),
    ...blank('messageExpression', messageExpression),
    ...(messageExpression.trim() === '' ? [] : compiler.message(`${path}.messageExpression`, messageExpression)),
    ...blank('message', message),
    ...(/[\n\r]/.test(message.trim())
      ? [fieldInvalid(`${path}.message`, message, 'must not contain line breaks')]
      : []),
    ...supported(`${path}.reason`, reason, reasons),
  ]
}

function annotationsCauses(
  path: string,
  policy: string,
  annotations: readonly Annotation[],
  compiler: PolicyCompiler,
): StatusCause[] {
  const keys = new Set<string>()
  const causes: StatusCause[] = []
  if (annotations.length > mostAnnotations)
    causes.push({
      reason: 'FieldValueInvalid',
      message: `Invalid value: ${listText(annotations)}: must not have more than ${mostAnnotations} auditAnnotations`,
      field: path,
    })
  for (const [index, { key, valueExpression }] of annotations.entries()) {
    const at = `${path}[${index}]`
    causes.push(...qualifiedName(`${at}.key`, `${policy}/${key}`))
    const expression = valueExpression.trim()
    if (expression === '') causes.push(fieldRequired(`${at}.valueExpression`, 'valueExpression is not specified'))
    else if (byteLength(expression) > longestValueExpression)
      causes.push(fieldRequired(`${at}.valueExpression`, `must not exceed ${longestValueExpression} bytes in length`))
    else causes.push(...compiler.annotation(`${at}.valueExpression`, valueExpression))
    if (keys.has(key)) causes.push(fieldDuplicate(`${at}.key`, key))
    keys.add(key)
  }
  return causes
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
