// The names that expressions may use: variables, functions with their overloads, and types.
import type { CelType } from '#apimachinery/cel/types/cel-type.ts'
import type { Value } from '#apimachinery/cel/values/value.ts'

export type Implementation = (...args: Value[]) => Value

export interface Overload {
  readonly id: string
  /** Types of the arguments; the first is the target's where `member` is true. */
  readonly params: readonly CelType[]
  readonly result: CelType
  readonly member: boolean
  readonly run: Implementation
  /** Names of the type parameters in `params` and `result`. */
  readonly typeParams: readonly string[]
  /** False for overloads that see arguments of any type at run time. */
  readonly guarded: boolean
}

export interface FunctionDeclaration {
  readonly name: string
  readonly overloads: readonly Overload[]
  /** One implementation for all overloads, by the types of the arguments at run time. */
  readonly all?: Implementation
}

interface OverloadOptions {
  readonly guarded?: boolean
}

/** An overload of `name(args)`. */
export function overload(
  id: string,
  params: readonly CelType[],
  result: CelType,
  run: Implementation,
  options: OverloadOptions = {},
): Overload {
  return makeOverload(id, params, result, run, false, options)
}

/** An overload of `target.name(args)`; the first parameter is the target's. */
export function member(
  id: string,
  params: readonly CelType[],
  result: CelType,
  run: Implementation,
  options: OverloadOptions = {},
): Overload {
  return makeOverload(id, params, result, run, true, options)
}

function makeOverload(
  id: string,
  params: readonly CelType[],
  result: CelType,
  run: Implementation,
  isMember: boolean,
  { guarded = true }: OverloadOptions,
): Overload {
  const typeParams = [...new Set([...params, result].flatMap(paramsIn))]
  return { id, params, result, member: isMember, run, typeParams, guarded }
}

function paramsIn(type: CelType): string[] {
  return type.kind === 'param' ? [type.name] : type.params.flatMap(paramsIn)
}

/** A type whose values have fields that are known by name. */
export interface StructDeclaration {
  readonly type: CelType
  /** The type of a field; undefined where there is no such field. */
  readonly fieldType: (name: string) => CelType | undefined
  /** Makes a value of the fields of a literal; undefined where expressions cannot make one. */
  readonly make?: (fields: ReadonlyMap<string, Value>) => Value
}

export type StructProvider = (name: string) => StructDeclaration | undefined

export interface Declarations {
  readonly container: string
  readonly variables: ReadonlyMap<string, CelType>
  readonly functions: ReadonlyMap<string, FunctionDeclaration>
  /** Names that stand for types, such as `int` and `net.IP`. */
  readonly typeNames: ReadonlyMap<string, CelType>
  readonly struct: StructProvider
}

/** Functions by name; overloads of the same name are put together in the order in which they come. */
export function mergeFunctions(declared: Iterable<FunctionDeclaration>): Map<string, FunctionDeclaration> {
  const byName = new Map<string, FunctionDeclaration>()
  for (const fn of declared) {
    const before = byName.get(fn.name)
    byName.set(
      fn.name,
      before === undefined ? fn : { ...before, ...fn, overloads: [...before.overloads, ...fn.overloads] },
    )
  }
  return byName
}
