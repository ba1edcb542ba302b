// Checks the expressions of a ValidatingAdmissionPolicy against the schemas of the kinds that it matches, for
// status.typeChecking. Errors are only reported there; the policy is in effect all the same.
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

/** A kind that a policy matches. Its type is undefined if expressions cannot read the fields of its objects. */
export interface CheckedKind extends GroupVersionKind {
  readonly type: DeclaredType | undefined
}

export interface ExpressionWarning {
  readonly fieldRef: string
  readonly warning: string
}

export interface TypeCheckOptions {
  readonly kinds: readonly CheckedKind[]
  /** The type of the parameters; undefined if the policy has none, or if their type is unknown. */
  readonly params: DeclaredType | undefined
  /** Charges the characters that will be compiled. If it returns false, the check ends. */
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
  // An expression that compiles but cannot run has no type error.
  if (program instanceof Program || program.stage !== 'compile') return []
  return [`${group}/${version}, Kind=${kind}: ${program.message}\n`]
}

/** Returns a function that gives the environment in which an expression is compiled. */
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
