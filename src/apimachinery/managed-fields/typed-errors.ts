// The errors of a value against its type, in the words of structured-merge-diff.
import { goFloat } from '#apimachinery/text/index.ts'
import { isJsonObject, type JsonValue, isJsonNumber } from '#apimachinery/meta/index.ts'
import type { FieldType } from './field-type.ts'

export interface TypedProblem {
  path: string
  readonly message: string
}

/** A value does not fit its type; the message names every problem. */
export class TypedError extends Error {
  constructor(problems: readonly TypedProblem[]) {
    const lines = problems.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`))
    super(lines.length === 1 ? lines[0] : ['errors:', ...lines.map((line) => `  ${line}`)].join('\n'))
  }
}

/** Collects problems during a walk over a value, each with its path relative to the node that reported it. */
export class TypedProblems {
  readonly list: TypedProblem[] = []

  add(message: string, path = ''): void {
    this.list.push({ path, message })
  }

  get count(): number {
    return this.list.length
  }

  /** Prepends `path` to the problems from index `from` on. */
  prefix(from: number, path: string): void {
    for (const problem of this.list.slice(from)) problem.path = path + problem.path
  }

  /** Throws a TypedError if there are any. */
  throwIfAny(): void {
    if (this.list.length > 0) throw new TypedError(this.list)
  }
}

/** Why a value is not a scalar of this type; undefined if it is. Absent and null fit every type. */
export function scalarProblem(
  scalar: NonNullable<FieldType['scalar']>,
  value: JsonValue | undefined,
): string | undefined {
  if (value === undefined || value === null) return undefined
  switch (scalar) {
    case 'numeric':
      return isJsonNumber(value) ? undefined : `expected numeric (int or float), got ${goTypeName(value)}`
    case 'string':
      return typeof value === 'string'
        ? undefined
        : `expected string, got &value.valueUnstructured{Value:${goSyntax(value)}}`
    case 'boolean':
      return typeof value === 'boolean' ? undefined : `expected boolean, got ${boxed(value)}`
    case 'untyped':
      return typeof value === 'object' ? `expected any scalar, got ${boxed(value)}` : undefined
  }
}

/** Go's %v of the value that upstream wraps it in. Numbers of an applied configuration are floats there. */
export function boxed(value: JsonValue): string {
  return `&{${plain(value)}}`
}

function plain(value: JsonValue): string {
  if (value === null) return '<nil>'
  if (isJsonNumber(value)) return goFloat(value)
  if (Array.isArray(value)) return `[${value.map(plain).join(' ')}]`
  if (!isJsonObject(value)) return String(value)
  const members = Object.keys(value).sort()
  return `map[${members.map((key) => `${key}:${plain(value[key] ?? null)}`).join(' ')}]`
}

function goTypeName(value: JsonValue): string {
  if (typeof value === 'string') return 'string'
  if (typeof value === 'boolean') return 'bool'
  if (isJsonNumber(value)) return 'float64'
  return Array.isArray(value) ? '[]interface {}' : 'map[string]interface {}'
}

/** Go's %#v of JSON data. */
function goSyntax(value: JsonValue): string {
  if (value === null) return 'interface {}(nil)'
  if (Array.isArray(value)) return `[]interface {}{${value.map(goSyntax).join(', ')}}`
  if (isJsonObject(value)) {
    const members = Object.keys(value).sort()
    return `map[string]interface {}{${members.map((key) => `${JSON.stringify(key)}:${goSyntax(value[key] ?? null)}`).join(', ')}}`
  }
  return isJsonNumber(value) ? goFloat(value) : JSON.stringify(value)
}
