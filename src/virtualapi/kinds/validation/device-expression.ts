// Compiles the CEL expressions that select devices (KEP-4381), to find their validation errors.
import {
  anyType,
  boolType,
  type CelType,
  compileExpression,
  type DeclaredType,
  type Environment,
  extendEnvironment,
  isSameType,
  kubernetesEnvironment,
  mapOf,
  Program,
  stringType,
  structType,
  printDeclaredType,
} from '#apimachinery/cel/index.ts'
import { fieldForbidden, fieldInvalid } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'

/** The most that an expression may cost, in cost units. */
const maxCost = 1_000_000n
/** The bounds of a device in a ResourceSlice, in characters and in entries. */
const most = { domain: 63, id: 32, driver: 63, value: 64, entries: 32 }

const text = (maxElements: number): DeclaredType => ({ type: stringType, minSerializedSize: 2, maxElements })

/** The type of a map of values by the domain of their name, then by its identifier. */
function named(value: DeclaredType): DeclaredType {
  const map = (key: DeclaredType, element: DeclaredType): DeclaredType => ({
    type: mapOf(key.type, element.type),
    minSerializedSize: 2,
    maxElements: most.entries,
    key,
    element,
  })
  return map(text(most.domain), map(text(most.id), value))
}

const deviceType: DeclaredType = {
  type: structType('kubernetes.DRADevice'),
  minSerializedSize: 0,
  maxElements: 0,
  fields: new Map([
    ['driver', text(most.driver)],
    ['attributes', named({ type: anyType, minSerializedSize: 1, maxElements: most.value })],
    ['capacity', named({ type: structType('kubernetes.Quantity'), minSerializedSize: 8, maxElements: 0 })],
  ]),
}

const environments = new Map<boolean, Environment>()

/**
 * The environment of an expression. A new expression may use only the libraries that a server of the previous version
 * also has.
 */
function environmentFor(stored: boolean): Environment {
  let environment = environments.get(stored)
  if (environment === undefined) {
    environment = extendEnvironment(kubernetesEnvironment(stored ? {} : { minor: 33 }), {
      variables: { device: deviceType.type },
      declaredTypes: [deviceType],
      bindings: true,
    })
    environments.set(stored, environment)
  }
  return environment
}

const isCondition = (type: CelType): boolean => type.kind === 'any' || isSameType(type, boolType)

/**
 * Validation errors of an expression. `stored`: true for an expression that is stored already, which may use all
 * libraries.
 */
export function deviceExpressionCauses(
  path: string,
  expression: string,
  { stored }: { readonly stored: boolean },
): StatusCause[] {
  const program = compileExpression(expression, environmentFor(stored))
  if (!(program instanceof Program)) {
    const { stage, message } = program
    if (stage === 'compile') return [fieldInvalid(path, expression, `compilation failed: ${message}`)]
    const failed = `Internal error: program instantiation failed: ${message}`
    return [{ reason: 'InternalError', message: failed, field: path }]
  }
  const { outputType } = program
  if (!isCondition(outputType))
    return [
      fieldInvalid(path, expression, `must evaluate to bool or the unknown type, not ${printDeclaredType(outputType)}`),
    ]
  return program.estimate(deviceType).max > maxCost ? [fieldForbidden(path, 'too complex, exceeds cost limit')] : []
}
