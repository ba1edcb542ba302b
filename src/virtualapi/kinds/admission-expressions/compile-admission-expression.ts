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

/** The reason why an expression is not a program. */
export interface ExpressionFailure {
  readonly message: string
  /** True if a constant part of the expression always fails. */
  readonly internal: boolean
}

/** The variables and libraries that an expression may use besides the object, the request and the namespace. */
export interface Scope {
  readonly hasParams: boolean
  readonly hasAuthorizer: boolean
  /**
   * The types of the policy's variables that come before the expression; undefined if expressions cannot use variables.
   */
  readonly variables?: ReadonlyMap<string, CelType> | undefined
  /** True for an expression that is stored already, which may use all libraries. */
  readonly stored: boolean
  /** True for a mutation: the expression may create values of the types `Object` and `JSONPatch`. */
  readonly hasPatchTypes?: boolean
}

/** The result types that are allowed where an expression is used. */
export const conditionTypes: readonly CelType[] = [boolType]
export const messageTypes: readonly CelType[] = [stringType]
export const annotationTypes: readonly CelType[] = [stringType, nullType]
export const applyConfigurationTypes: readonly CelType[] = [structType('Object')]
export const jsonPatchTypes: readonly CelType[] = [listOf(structType('JSONPatch'))]
/** Every type is allowed. */
export const anyTypes: readonly CelType[] = []

/** The libraries that new expressions may use: the libraries that a server of the previous version also has. */
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

/** Compiles an expression whose result must have one of these types; an empty list allows every type. */
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
 * The variables that an expression names: if all variables were declared for each expression, the cost of a policy
 * would grow with the square of their number.
 */
export function variablesIn(text: string, variables: ReadonlyMap<string, CelType>): Record<string, CelType> {
  const found: Record<string, CelType> = {}
  for (const [word] of text.matchAll(/\w+/g)) {
    const type = variables.get(word)
    if (type !== undefined) found[word] = type
  }
  return found
}

/** The type of a variable in other expressions. */
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

/**
 * The validation error of an expression at a path, as a list; empty if it compiled. `value`: the text that the message
 * shows.
 */
export function expressionCauses(path: string, value: string, compiled: Program | ExpressionFailure): StatusCause[] {
  if (compiled instanceof Program) return []
  const { message, internal } = compiled
  return internal
    ? [{ reason: 'InternalError', message: `Internal error: ${message}`, field: path }]
    : [fieldInvalid(path, value, message)]
}
