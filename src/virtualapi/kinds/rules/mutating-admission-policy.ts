// MutatingAdmissionPolicies, whose expressions must compile, and their bindings.
import type {
  V1MatchResources,
  V1beta1MutatingAdmissionPolicyBindingSpec,
  V1beta1MutatingAdmissionPolicySpec,
  V1beta1Mutation,
} from '@kubernetes/client-node'
import type { CelType } from '#apimachinery/cel/index.ts'
import { applyConfigurationTypes, jsonPatchTypes } from '#virtualapi/kinds/admission-expressions/index.ts'
import { PolicyCompiler } from '#virtualapi/kinds/admission-expressions/policy-compiler.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { paramKind, policyVariable } from '#virtualapi/kinds/validation/admission-policies.ts'
import { failurePolicy } from '#virtualapi/kinds/validation/admission-rules.ts'
import { objectName } from '#virtualapi/kinds/validation/basic-rules.ts'
import { matchConditions } from '#virtualapi/kinds/validation/match-conditions.ts'
import { matchConstraints, matchResources } from '#virtualapi/kinds/validation/match-resources.ts'
import { paramRef } from '#virtualapi/kinds/validation/param-ref.ts'
import {
  all,
  each,
  fields,
  nonEmpty,
  oneOf,
  required,
  validating,
  type ObjectOf,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import type { KindRules } from './kind-rules.ts'

type Spec = Data<V1beta1MutatingAdmissionPolicySpec>
type Mutation = Data<V1beta1Mutation>
type MatchResources = Data<V1MatchResources>

interface Context {
  readonly compiler: PolicyCompiler
  readonly hasParams: boolean
  readonly stored: ReadonlySet<string>
}

const operation = oneOf(['*', 'CONNECT', 'CREATE', 'UPDATE'])
/** DELETE is not allowed: it has no object to mutate. As upstream, the field paths of these errors have no indexes. */
const mutableOperations: Rule<MatchResources | undefined> = (match, report) => {
  for (const { operations = [] } of match?.resourceRules ?? [])
    for (const one of operations) report.at('resourceRules.operations', operation, one)
}

const patchTypes: Readonly<
  Record<string, { member: keyof Mutation; other: keyof Mutation; types: readonly CelType[] }>
> = {
  ApplyConfiguration: { member: 'applyConfiguration', other: 'jsonPatch', types: applyConfigurationTypes },
  JSONPatch: { member: 'jsonPatch', other: 'applyConfiguration', types: jsonPatchTypes },
}
const patchType = required(oneOf(Object.keys(patchTypes)))

const mutation: Rule<Mutation, Context> = (one, report, { compiler }) => {
  const type = one.patchType
  const patch = Object.hasOwn(patchTypes, type) ? patchTypes[type] : undefined
  if (patch === undefined) {
    report.at('patchType', patchType, type)
    return
  }
  const { member, other, types } = patch
  const given = one[member] as Mutation['jsonPatch']
  const place = `${member}.expression`
  if (given === undefined) report.required(member, `must be specified when patchType is ${type}`)
  else if (!given.expression?.trim()) report.required(place)
  else report.add(...compiler.mutation(report.path(place), given.expression, types))
  if (one[other] !== undefined) report.invalid(other, `{${other}}`, `must not be specified when patchType is ${type}`)
}

const specRule = fields<Spec, Context>({
  failurePolicy,
  paramKind,
  matchConstraints: all<MatchResources | undefined>(matchConstraints, mutableOperations),
  matchConditions,
  variables: each(policyVariable),
  mutations: all<Mutation[] | undefined, Context>(nonEmpty('mutations must contain at least one item'), each(mutation)),
  reinvocationPolicy: required(oneOf(['IfNeeded', 'Never'])),
})

export const mutatingAdmissionPolicyRules: KindRules = {
  validate: validating<ObjectOf<Spec>>(({ spec }, report, old) => {
    const compiler = new PolicyCompiler({ variables: [], ...spec }, old === undefined ? [] : expressionsOf(old.spec))
    report.at('spec', specRule, spec, { compiler, hasParams: spec.paramKind !== undefined, stored: compiler.stored })
  }),
}

/** Expressions that are checked as stored ones. As upstream, those of JSON patches are always checked as new ones. */
function expressionsOf({ matchConditions = [], mutations = [] }: Spec): string[] {
  return [
    ...matchConditions.map(({ expression }) => expression),
    ...mutations.flatMap(({ applyConfiguration }) => applyConfiguration?.expression ?? []),
  ]
}

type BindingSpec = Data<V1beta1MutatingAdmissionPolicyBindingSpec>

export const mutatingAdmissionPolicyBindingRules: KindRules = {
  validate: validating(
    fields<ObjectOf<BindingSpec>>({
      spec: fields<BindingSpec>({
        policyName: objectName,
        paramRef,
        matchResources: all<MatchResources | undefined>(matchResources, mutableOperations),
      }),
    }),
  ),
}
