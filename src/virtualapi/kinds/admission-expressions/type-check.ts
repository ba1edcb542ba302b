// Checks the expressions of a ValidatingAdmissionPolicy against the schemas of the kinds that it is about, for
// status.typeChecking: what is wrong is told, and the policy is in effect all the same.
import type { V1ValidatingAdmissionPolicySpec } from '@kubernetes/client-node'
import {
  authorizerType,
  type CelType,
  compileExpression,
  type DeclaredType,
  dynType,
  type Environment,
  extendEnvironment,
  kubernetesEnvironment,
  Program,
} from '#apimachinery/cel/index.ts'
import type { GroupVersionKind } from '#apimachinery/meta/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { namespaceType, objectType, requestType } from './admission-types.ts'
import { typeOfVariable, variablesIn } from './compile-admission-expression.ts'

type Spec = Data<V1ValidatingAdmissionPolicySpec>

/** A kind that a policy is about; its type is undefined where expressions cannot look into its objects. */
export interface CheckedKind extends GroupVersionKind {
  readonly type: DeclaredType | undefined
}

export interface ExpressionWarning {
  readonly fieldRef: string
  readonly warning: string
}

export interface TypeCheckOptions {
  readonly kinds: readonly CheckedKind[]
  /** The type of the parameters; undefined: the policy has none, or nobody knows it. */
  readonly params: DeclaredType | undefined
  /** Charges the characters that are compiled; false ends the check. */
  readonly trySpend: (characters: number) => boolean
}

/** The warnings of validations and their messages, in their order. */
export function typeWarnings(
  { validations = [], variables = [] }: Spec,
  options: TypeCheckOptions,
): ExpressionWarning[] {
  const length = variables.reduce((sum, { expression }) => sum + expression.length, 0)
  if (!options.trySpend(options.kinds.length * length)) return []
  const environments = options.kinds.map((kind) => [kind, environmentsOf(kind, variables, options)] as const)
  const check = (fieldRef: string, text: string): ExpressionWarning[] => {
    if (!options.trySpend(options.kinds.length * text.length)) return []
    const problems = environments.flatMap(([kind, environmentOf]) => problemsOf(text, kind, environmentOf(text)))
    return problems.length === 0 ? [] : [{ fieldRef, warning: problems.join('\n') }]
  }
  return validations.flatMap(({ expression, messageExpression = '' }, index) => [
    ...check(`spec.validations[${String(index)}].expression`, expression),
    ...(messageExpression === ''
      ? []
      : check(`spec.validations[${String(index)}].messageExpression`, messageExpression)),
  ])
}

function problemsOf(text: string, { group, version, kind }: CheckedKind, environment: Environment): string[] {
  const program = compileExpression(text, environment)
  // What only fails when it runs is no matter of types.
  if (program instanceof Program || program.stage !== 'compile') return []
  return [`${group}/${version}, Kind=${kind}: ${program.message}\n`]
}

/** Resolves an expression to the environment in which it is compiled. */
function environmentsOf(
  { type }: CheckedKind,
  variables: NonNullable<Spec['variables']>,
  { params }: TypeCheckOptions,
): (text: string) => Environment {
  const object = type?.type ?? dynType
  const base = extendEnvironment(kubernetesEnvironment(), {
    variables: {
      object,
      oldObject: object,
      namespaceObject: namespaceType.type,
      request: requestType.type,
      ...(params === undefined ? {} : { params: params.type }),
      authorizer: authorizerType,
    },
    declaredTypes: [namespaceType, requestType, ...(type ? [type] : []), ...(params ? [params] : [])],
  })
  const types = new Map<string, CelType>()
  const composed = (text: string): Environment => {
    const declared = objectType('kubernetes.variables', variablesIn(text, types))
    return extendEnvironment(base, { variables: { variables: declared.type }, declaredTypes: [declared] })
  }
  for (const { name, expression } of variables) {
    const program = compileExpression(expression, composed(expression))
    types.set(name, program instanceof Program ? typeOfVariable(program.outputType) : dynType)
  }
  return composed
}
