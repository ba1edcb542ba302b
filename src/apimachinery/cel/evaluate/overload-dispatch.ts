// Picks the overload of a function by the types that its arguments have at run time.
import type { FunctionDeclaration, Implementation, Overload } from '#apimachinery/cel/declarations/declarations.ts'
import type { FunctionReference } from '#apimachinery/cel/declarations/checked-expression.ts'
import type { CelType } from '#apimachinery/cel/types/cel-type.ts'
import {
  CelDouble,
  CelDuration,
  CelError,
  CelList,
  CelMap,
  CelObject,
  CelOptional,
  CelTimestamp,
  CelTypeValue,
  CelUint,
  isInt,
  typeNameOf,
  type Value,
} from '#apimachinery/cel/values/value.ts'

/** The implementation of a call: of the one overload that fits, or one that looks at the arguments. */
export function implementationOf({ declaration, overloadIds }: FunctionReference, argCount: number): Implementation {
  if (declaration.all !== undefined) return declaration.all
  const only = overloadIds.length === 1 ? declaration.overloads.find(({ id }) => id === overloadIds[0]) : undefined
  if (only !== undefined) return guarded(declaration.name, only)
  const candidates = declaration.overloads.filter(({ params }) => params.length === argCount)
  return (...args) => {
    const fitting = candidates.find((overload) => fits(overload, args))
    return fitting === undefined ? noOverload(declaration, args) : fitting.run(...args)
  }
}

function guarded(name: string, overload: Overload): Implementation {
  if (!overload.guarded || overload.params.every(({ kind }) => kind === 'param' || kind === 'dyn')) return overload.run
  const { params, run } = overload
  const [first, second] = params
  if (params.length === 1 && first !== undefined)
    return (value) => (isOfType(value ?? null, first) ? run(value ?? null) : noOverload({ name }, [value ?? null]))
  if (params.length === 2 && first !== undefined && second !== undefined)
    return (a, b) =>
      isOfType(a ?? null, first) && isOfType(b ?? null, second)
        ? run(a ?? null, b ?? null)
        : noOverload({ name }, [a ?? null, b ?? null])
  return (...args) => (fits(overload, args) ? run(...args) : noOverload({ name }, args))
}

function fits({ params }: Overload, args: readonly Value[]): boolean {
  return params.every((type, i) => isOfType(args[i] ?? null, type))
}

function noOverload({ name }: Pick<FunctionDeclaration, 'name'>, args: readonly Value[]): Value {
  const error = args.find((arg) => arg instanceof CelError)
  return error ?? new CelError(`no such overload: ${name}(${args.map(typeNameOf).join(', ')})`)
}

function isOfType(value: Value, { kind, name }: CelType): boolean {
  switch (kind) {
    case 'dyn':
    case 'any':
    case 'param':
      return true
    case 'string':
      return typeof value === 'string'
    case 'int':
      return isInt(value)
    case 'bool':
      return typeof value === 'boolean'
    case 'null':
      return value === null
    case 'uint':
      return value instanceof CelUint
    case 'double':
      return value instanceof CelDouble
    case 'bytes':
      return value instanceof Uint8Array
    case 'list':
      return value instanceof CelList
    case 'map':
      return value instanceof CelMap
    case 'timestamp':
      return value instanceof CelTimestamp
    case 'duration':
      return value instanceof CelDuration
    case 'type':
      return value instanceof CelTypeValue
    case 'opaque':
      return name === 'optional_type'
        ? value instanceof CelOptional
        : value instanceof CelObject && value.typeName === name
    case 'struct':
      return value instanceof CelObject && value.typeName === name
    case 'error':
      return false
  }
}
