// FlowSchemas: they assign requests to priority levels.
import { isDeepStrictEqual } from 'node:util'
import type {
  FlowcontrolV1Subject,
  V1FlowSchemaSpec,
  V1PolicyRulesWithSubjects,
  V1PriorityLevelConfigurationReference,
} from '@kubernetes/client-node'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { label, subdomain } from '#virtualapi/kinds/validation/basic-rules.ts'
import {
  all,
  each,
  fields,
  nonEmpty,
  required,
  validating,
  validatingChange,
  type ObjectOf,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import { flowStatusCauses, typedConditions } from './flow-conditions.ts'
import { nonResourceRule, resourceRule } from './flow-rules.ts'
import type { KindRules } from './kind-rules.ts'

type Spec = Data<V1FlowSchemaSpec>
type Schema = ObjectOf<Spec> & KubeObject
type Subject = Data<FlowcontrolV1Subject>

const highestPrecedence = 10_000
const methods = ['ByNamespace', 'ByUser']

/** The FlowSchemas "exempt" and "catch-all" have a fixed spec. */
const mandatory: Rule<Schema, Schema> = ({ metadata, spec }, report, old) => {
  const { name = '' } = metadata
  if ((name === 'exempt' || name === 'catch-all') && !isDeepStrictEqual(spec, old.spec))
    report.invalidStruct('spec', 'flowcontrol.FlowSchemaSpec', spec, `spec of '${name}' must equal the fixed value`)
}

/** The member that identifies a subject of each kind, in the order of upstream's errors. */
const members = { ServiceAccount: 'serviceAccount', User: 'user', Group: 'group' } as const

const accountName = required((name: string, report) => {
  if (name !== '*') report.check(subdomain, name)
})
const identities = {
  serviceAccount: fields<NonNullable<Subject['serviceAccount']>>({
    name: accountName,
    namespace: required(label, 'must specify namespace for service account'),
  }),
  user: fields<NonNullable<Subject['user']>>({ name: nonEmpty() }),
  group: fields<NonNullable<Subject['group']>>({ name: nonEmpty() }),
}

const subjectRule: Rule<Subject> = (subject, report) => {
  const { kind } = subject
  if (!Object.hasOwn(members, kind)) {
    report.notSupported('kind', kind, ['Group', 'ServiceAccount', 'User'])
    return
  }
  const own = members[kind as keyof typeof members]
  const identity = subject[own]
  if (identity === undefined) report.required(own, `${own} is required when subject kind is '${kind}'`)
  else report.at(own, identities[own] as Rule<object>, identity)
  for (const [other, member] of Object.entries(members))
    if (member !== own && subject[member] !== undefined)
      report.forbidden(member, `${member} is forbidden when subject kind is not '${other}'`)
}

const rule = all<Data<V1PolicyRulesWithSubjects>>(
  fields<Data<V1PolicyRulesWithSubjects>>({
    subjects: required(each(subjectRule), 'subjects must contain at least one value'),
  }),
  ({ resourceRules, nonResourceRules }, report) => {
    if (!resourceRules?.length && !nonResourceRules?.length)
      report.required('', 'at least one of resourceRules and nonResourceRules has to be non-empty')
  },
  fields<Data<V1PolicyRulesWithSubjects>>({
    resourceRules: each(resourceRule),
    nonResourceRules: each(nonResourceRule),
  }),
)

const specRule = all<Spec, { readonly name: string }>(
  ({ matchingPrecedence = 0, distinguisherMethod }, report, { name }) => {
    const precedence = (text: string): void => report.invalid('matchingPrecedence', matchingPrecedence, text)
    if (matchingPrecedence <= 0) precedence('must be a positive value')
    if (matchingPrecedence > highestPrecedence) precedence(`must not be greater than ${highestPrecedence}`)
    if (matchingPrecedence === 1 && name !== 'exempt')
      precedence("only the schema named 'exempt' may have matchingPrecedence 1")
    const { type } = distinguisherMethod ?? {}
    if (type !== undefined && !methods.includes(type))
      report.notSupported('distinguisherMethod.type', { Type: type }, methods)
  },
  fields<Spec>({
    priorityLevelConfiguration: fields<Data<V1PriorityLevelConfigurationReference>>({
      name: required(subdomain, 'must reference a priority level'),
    }),
    rules: each(rule),
  }),
)

export const flowSchemaRules: KindRules = {
  validate: validating<Schema>((schema, report) => {
    report.at('spec', specRule, schema.spec, { name: schema.metadata.name ?? '' })
    report.check(typedConditions, schema)
  }),
  validateChange: validatingChange(mandatory),
  validateSubresource: flowStatusCauses,
}
