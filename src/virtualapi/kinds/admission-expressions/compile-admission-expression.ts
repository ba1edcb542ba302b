// Compiles the expressions of admission policies and of the match conditions of webhooks.
import {
  authorizerType,
  boolType,
  type CelType,
  compileExpression,
  dynType,
  type Environment,
  extendEnvironment,
  isSameType,
  kubernetesEnvironment,
  listOf,
  mutationFunctions,
  mutationStructs,
  nullType,
  printDeclaredType,
  Program,
  resourceCheckType,
  stringType,
  structType,
} from '#apimachinery/cel/index.ts'
import { fieldInvalid } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { namespaceType, objectType, plainType, requestType } from './admission-types.ts'

/** Why an expression is no program. */
export interface ExpressionFailure {
  readonly message: string
  /** True where a constant part of it can only fail. */
  readonly internal: boolean
}

/** What an expression may use besides the object, the request and the namespace. */
export interface Scope {
  readonly hasParams: boolean
  readonly hasAuthorizer: boolean
  /** Types of the variables of the policy that come before it; undefined where it has none. */
  readonly variables?: ReadonlyMap<string, CelType> | undefined
  /** True for an expression that is stored: it may use all libraries. */
  readonly stored: boolean
  /** True for a mutation: it may make values of the types `Object` and `JSONPatch`. */
  readonly hasPatchTypes?: boolean
}

/** The types that a use of an expression allows. */
export const conditionTypes: readonly CelType[] = [boolType]
export const messageTypes: readonly CelType[] = [stringType]
export const annotationTypes: readonly CelType[] = [stringType, nullType]
export const applyConfigurationTypes: readonly CelType[] = [structType('Object')]
export const jsonPatchTypes: readonly CelType[] = [listOf(structType('JSONPatch'))]
/** Any type will do. */
export const anyTypes: readonly CelType[] = []

/** New expressions may use what a server of the version before has, too. */
const newExpressions = { minor: 33 }
const environments = new Map<string, Environment>()

function baseEnvironment({ hasParams, hasAuthorizer, stored, hasPatchTypes = false }: Scope): Environment {
  const key = JSON.stringify([hasParams, hasAuthorizer, stored, hasPatchTypes])
  let found = environments.get(key)
  if (found === undefined) {
    found = extendEnvironment(kubernetesEnvironment(stored ? {} : newExpressions), {
      variables: {
        object: dynType,
        oldObject: dynType,
        namespaceObject: namespaceType.type,
        request: requestType.type,
        ...(hasParams ? { params: dynType } : {}),
        ...(hasAuthorizer ? { authorizer: authorizerType, 'authorizer.requestResource': resourceCheckType } : {}),
      },
      declaredTypes: [namespaceType, requestType],
      ...(hasPatchTypes ? { structs: mutationStructs, functions: mutationFunctions } : {}),
    })
    environments.set(key, found)
  }
  return found
}

/** The program of an expression that gives one of these types. */
export function compileAdmissionExpression(
  text: string,
  types: readonly CelType[],
  scope: Scope,
): Program | ExpressionFailure {
  const base = baseEnvironment(scope)
  const variables = scope.variables && objectType('kubernetes.variables', variablesIn(text, scope.variables))
  const environment =
    variables === undefined
      ? base
      : extendEnvironment(base, { variables: { variables: variables.type }, declaredTypes: [variables] })
  const program = compileExpression(text, environment)
  if (!(program instanceof Program)) {
    const isText = program.stage === 'compile'
    const head = isText ? 'compilation failed: ' : 'program instantiation failed: '
    return { message: head + program.message, internal: !isText }
  }
  const { outputType } = program
  if (types.length === 0 || types.some((type) => isSameType(type, outputType))) return program
  const [only = dynType] = types
  const wanted = types.length === 1 ? printDeclaredType(only) : `one of [${types.map(printDeclaredType).join(' ')}]`
  return { message: `must evaluate to ${wanted} but got ${printDeclaredType(outputType)}`, internal: false }
}

/**
 * The variables that an expression names: with all of them, the cost of a policy would be the square of their number.
 */
export function variablesIn(text: string, variables: ReadonlyMap<string, CelType>): Record<string, CelType> {
  const found: Record<string, CelType> = {}
  for (const [word] of text.matchAll(/\w+/g)) {
    const type = variables.get(word)
    if (type !== undefined) found[word] = type
  }
  return found
}

/** The type under which other expressions see a variable. */
export function typeOfVariable(type: CelType): CelType {
  if (type.kind === 'list' || type.kind === 'map') return { ...type, params: type.params.map(typeOfVariable) }
  return plainKinds.has(type.kind) ? plainType(type).type : dynType
}

const plainKinds: ReadonlySet<string> = new Set([
  'any',
  'bool',
  'bytes',
  'double',
  'duration',
  'int',
  'null',
  'string',
  'timestamp',
  'uint',
])

/** What is wrong with an expression at a path; `value` is what the message shows. */
export function expressionCauses(path: string, value: string, compiled: Program | ExpressionFailure): StatusCause[] {
  if (compiled instanceof Program) return []
  const { message, internal } = compiled
  return internal
    ? [{ reason: 'InternalError', message: `Internal error: ${message}`, field: path }]
    : [fieldInvalid(path, value, message)]
}
