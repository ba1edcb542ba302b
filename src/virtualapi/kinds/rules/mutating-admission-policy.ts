// MutatingAdmissionPolicy: its members, and that its expressions compile.
import type { V1beta1MutatingAdmissionPolicySpec, V1beta1Mutation, V1MatchResources } from '@kubernetes/client-node'
import { fieldInvalid, fieldNotSupported, fieldRequired } from '#apimachinery/field/index.ts'
import type { CelType } from '#apimachinery/cel/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { paramKindCauses, variableCauses } from '#virtualapi/kinds/validation/admission-policies.ts'
import { failurePolicies } from '#virtualapi/kinds/validation/admission-rules.ts'
import { applyConfigurationTypes, jsonPatchTypes } from '#virtualapi/kinds/admission-expressions/index.ts'
import { PolicyCompiler } from '#virtualapi/kinds/admission-expressions/policy-compiler.ts'
import { matchConditionCauses } from '#virtualapi/kinds/validation/match-conditions.ts'
import { matchConstraintsCauses } from '#virtualapi/kinds/validation/match-resources.ts'
import { requiredOneOf, supported } from '#virtualapi/kinds/validation/values.ts'

type Spec = Data<V1beta1MutatingAdmissionPolicySpec>

const reinvocationPolicies = ['IfNeeded', 'Never']
const patchTypes = ['ApplyConfiguration', 'JSONPatch']
const operations = ['*', 'CONNECT', 'CREATE', 'UPDATE']

export const mutatingAdmissionPolicyRules: KindRules = {
  validate(object, old) {
    const spec = object['spec'] as Spec
    const before = old?.['spec'] as Spec | undefined
    const compiler = new PolicyCompiler({ variables: [], ...spec }, before === undefined ? [] : expressionsOf(before))
    const { mutations = [] } = spec
    return [
      ...supported('spec.failurePolicy', spec.failurePolicy, failurePolicies),
      ...paramKindCauses('spec.paramKind', spec.paramKind),
      ...matchConstraintsCauses('spec.matchConstraints', spec.matchConstraints),
      ...mutableOperationCauses('spec.matchConstraints', spec.matchConstraints),
      ...matchConditionCauses('spec.matchConditions', spec.matchConditions ?? [], {
        hasParams: spec.paramKind !== undefined,
        stored: compiler.stored,
      }),
      ...(spec.variables ?? []).flatMap((variable, index) =>
        variableCauses(`spec.variables[${index}]`, variable, compiler),
      ),
      ...(mutations.length === 0 ? [fieldRequired('spec.mutations', 'mutations must contain at least one item')] : []),
      ...mutations.flatMap((mutation, index) => mutationCauses(`spec.mutations[${index}]`, mutation, compiler)),
      ...requiredOneOf('spec.reinvocationPolicy', spec.reinvocationPolicy, reinvocationPolicies),
    ]
  },
}

/** Requests that delete have no object to be mutated. */
export function mutableOperationCauses(path: string, match: Data<V1MatchResources> | undefined): StatusCause[] {
  const named = (match?.resourceRules ?? []).flatMap((rule) => rule.operations ?? [])
  return named
    .filter((operation) => !operations.includes(operation))
    .map((operation) => fieldNotSupported(`${path}.resourceRules.operations`, operation, operations))
}

function mutationCauses(
  path: string,
  { patchType, applyConfiguration, jsonPatch }: Data<V1beta1Mutation>,
  compiler: PolicyCompiler,
): StatusCause[] {
  const required = (member: string): StatusCause =>
    fieldRequired(`${path}.${member}`, `must be specified when patchType is ${patchType}`)
  const excess = (member: string): StatusCause =>
    fieldInvalid(`${path}.${member}`, `{${member}}`, `must not be specified when patchType is ${patchType}`)
  const expression = (member: string, text: string, types: readonly CelType[]): StatusCause[] =>
    text.trim() === ''
      ? [fieldRequired(`${path}.${member}.expression`)]
      : compiler.mutation(`${path}.${member}.expression`, text, types)
  switch (patchType) {
    case 'JSONPatch':
      return [
        ...(jsonPatch === undefined
          ? [required('jsonPatch')]
          : expression('jsonPatch', jsonPatch.expression ?? '', jsonPatchTypes)),
        ...(applyConfiguration === undefined ? [] : [excess('applyConfiguration')]),
      ]
    case 'ApplyConfiguration':
      return [
        ...(applyConfiguration === undefined
          ? [required('applyConfiguration')]
          : expression('applyConfiguration', applyConfiguration.expression ?? '', applyConfigurationTypes)),
        ...(jsonPatch === undefined ? [] : [excess('jsonPatch')]),
      ]
    default:
      return requiredOneOf(`${path}.patchType`, patchType, patchTypes)
  }
}

/** As upstream, JSON patches that were stored count as new. */
function expressionsOf({ matchConditions = [], mutations = [] }: Spec): string[] {
  return [
    ...matchConditions.map(({ expression }) => expression),
    ...mutations.flatMap(({ applyConfiguration }) => applyConfiguration?.expression ?? []),
  ]
}
