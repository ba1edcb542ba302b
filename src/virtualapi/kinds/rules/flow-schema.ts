// FlowSchemas: they assign requests to priority levels.
import { isDeepStrictEqual } from 'node:util'
import type { FlowcontrolV1Subject, V1FlowSchemaSpec, V1PolicyRulesWithSubjects } from '@kubernetes/client-node'
import { fieldForbidden, fieldInvalid, fieldNotSupported, fieldRequired } from '#apimachinery/field/index.ts'
import type { JsonObject, KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { invalidInternal } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { label, subdomain } from '#virtualapi/kinds/validation/values.ts'
import { typedConditionCauses } from './flow-conditions.ts'
import { nonResourceRuleCauses, resourceRuleCauses } from './flow-rules.ts'

type Spec = Data<V1FlowSchemaSpec>
type Subject = Data<FlowcontrolV1Subject>

const highestPrecedence = 10_000
const methods = ['ByNamespace', 'ByUser']

export const flowSchemaRules: KindRules = {
  validate: (object) => [
    ...specCauses(object.metadata.name ?? '', object['spec'] as Spec),
    ...typedConditionCauses(object),
  ],
  validateChange: mandatoryCauses,
  validateSubresource: (object, _old, subresource) => (subresource === 'status' ? typedConditionCauses(object) : []),
}

/** The FlowSchemas "exempt" and "catch-all" have a fixed spec. */
function mandatoryCauses(object: KubeObject, old: KubeObject): StatusCause[] {
  const { name = '' } = object.metadata
  const spec = object['spec'] as JsonObject
  if ((name !== 'exempt' && name !== 'catch-all') || isDeepStrictEqual(spec, old['spec'])) return []
  return [invalidInternal('spec', 'flowcontrol.FlowSchemaSpec', spec, `spec of '${name}' must equal the fixed value`)]
}

function specCauses(name: string, spec: Spec): StatusCause[] {
  const { matchingPrecedence = 0, distinguisherMethod, priorityLevelConfiguration: level, rules } = spec
  const precedence = (text: string): StatusCause => fieldInvalid('spec.matchingPrecedence', matchingPrecedence, text)
  return [
    ...(matchingPrecedence <= 0 ? [precedence('must be a positive value')] : []),
    ...(matchingPrecedence > highestPrecedence ? [precedence(`must not be greater than ${highestPrecedence}`)] : []),
    ...(matchingPrecedence === 1 && name !== 'exempt'
      ? [precedence("only the schema named 'exempt' may have matchingPrecedence 1")]
      : []),
    ...(distinguisherMethod === undefined || methods.includes(distinguisherMethod.type)
      ? []
      : [fieldNotSupported('spec.distinguisherMethod.type', { Type: distinguisherMethod.type }, methods)]),
    ...(level.name === ''
      ? [fieldRequired('spec.priorityLevelConfiguration.name', 'must reference a priority level')]
      : subdomain('spec.priorityLevelConfiguration.name', level.name)),
    ...(rules ?? []).flatMap((rule, index) => ruleCauses(`spec.rules[${index}]`, rule)),
  ]
}

function ruleCauses(path: string, rule: Data<V1PolicyRulesWithSubjects>): StatusCause[] {
  const { resourceRules = [], nonResourceRules = [] } = rule
  const subjects = (rule.subjects as Subject[] | null) ?? []
  return [
    ...(subjects.length === 0
      ? [fieldRequired(`${path}.subjects`, 'subjects must contain at least one value')]
      : subjects.flatMap((subject, index) => subjectCauses(`${path}.subjects[${index}]`, subject))),
    ...(resourceRules.length === 0 && nonResourceRules.length === 0
      ? [fieldRequired(path, 'at least one of resourceRules and nonResourceRules has to be non-empty')]
      : []),
    ...resourceRules.flatMap((one, index) => resourceRuleCauses(`${path}.resourceRules[${index}]`, one)),
    ...nonResourceRules.flatMap((one, index) => nonResourceRuleCauses(`${path}.nonResourceRules[${index}]`, one)),
  ]
}

/** The member that identifies a subject of each kind, in the order of upstream's errors. */
const members = { ServiceAccount: 'serviceAccount', User: 'user', Group: 'group' } as const

function subjectCauses(path: string, subject: Subject): StatusCause[] {
  const { kind } = subject
  if (!Object.hasOwn(members, kind))
    return [fieldNotSupported(`${path}.kind`, kind, ['Group', 'ServiceAccount', 'User'])]
  const own = members[kind as keyof typeof members]
  const otherIdentities = Object.entries(members).filter(
    ([, member]) => member !== own && subject[member] !== undefined,
  )
  return [
    ...identityCauses(`${path}.${own}`, kind, own, subject),
    ...otherIdentities.map(([other, member]) =>
      fieldForbidden(`${path}.${member}`, `${member} is forbidden when subject kind is not '${other}'`),
    ),
  ]
}

function identityCauses(
  path: string,
  kind: string,
  member: (typeof members)[keyof typeof members],
  subject: Subject,
): StatusCause[] {
  const identity = subject[member]
  if (identity === undefined) return [fieldRequired(path, `${member} is required when subject kind is '${kind}'`)]
  const { name } = identity
  const causes = name === '' ? [fieldRequired(`${path}.name`)] : []
  if (!('namespace' in identity)) return causes
  const { namespace } = identity
  return [
    ...causes,
    ...(name === '' || name === '*' ? [] : subdomain(`${path}.name`, name)),
    ...(namespace === ''
      ? [fieldRequired(`${path}.namespace`, 'must specify namespace for service account')]
      : label(`${path}.namespace`, namespace)),
  ]
}
