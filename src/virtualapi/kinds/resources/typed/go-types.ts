// Built-in kinds as Go structs, from the generated table. kube-apiserver decodes into such structs. Decoding drops
// unknown and empty members, adds members that are always printed, and refuses values of the wrong type.
import { parseJsonText } from '#apimachinery/json/index.ts'
import { readFileSync } from 'node:fs'

/**
 * b bool, i int32, l int64, s string, y bytes, d double, T Time, U MicroTime, D Duration, Q Quantity, I IntOrString,
 * R any JSON, @ struct
 */
export type TypeCode = 'b' | 'i' | 'l' | 's' | 'y' | 'd' | 'T' | 'U' | 'D' | 'Q' | 'I' | 'R' | '@'

/** A member of a Go struct. */
export interface Member {
  readonly name: string
  readonly code: TypeCode
  readonly container: 'none' | 'list' | 'map' | 'mapOfLists'
  readonly pointer: boolean
  readonly omitEmpty: boolean
  readonly omitZero: boolean
  /** Go's name of the type of one value, for error messages. */
  readonly goName: string
  /** Go's name of the list or map type; undefined if it follows from `goName`. */
  readonly collectionName?: string
  /** Name of the struct, for code `@`; otherwise empty. */
  readonly struct: string
}

/** A Go struct with its members in order. */
export interface StructType {
  /** The name in the table, for example `core.v1.Container`. */
  readonly name: string
  readonly members: readonly Member[]
}

/** Name, type, flags, Go's type name of one value, Go's type name of the list or map; see scripts/generate/go-types. */
type Row = [name: string, type: string, flags: string, goName?: string, collectionName?: string]

interface Table {
  kinds: Record<string, string>
  structs: Record<string, Row[]>
}

const table = parseJsonText(
  readFileSync(new URL('generated/go-types.json', import.meta.url), 'utf8'),
) as unknown as Table
const structs = new Map<string, StructType>()

const plainNames: Partial<Record<TypeCode, string>> = {
  b: 'bool',
  i: 'int32',
  l: 'int64',
  s: 'string',
  y: '[]uint8',
  d: 'float64',
  T: 'v1.Time',
  U: 'v1.MicroTime',
  D: 'v1.Duration',
  Q: 'resource.Quantity',
  I: 'intstr.IntOrString',
}

/** The struct of a built-in kind; undefined for other kinds. */
export function structOfKind(apiVersion: string, kind: string): StructType | undefined {
  const name = table.kinds[`${apiVersion}/${kind}`]
  return name === undefined ? undefined : structNamed(name)
}

/** The struct of this name. Throws an Error if the table lacks it, which is a bug. */
export function structNamed(name: string): StructType {
  const known = structs.get(name)
  if (known !== undefined) return known
  const rows = table.structs[name]
  if (rows === undefined) throw new Error(`no Go struct "${name}" in the table`)
  const struct = { name, members: rows.map(memberOf) }
  structs.set(name, struct)
  return struct
}

/** The struct behind an OpenAPI definition such as `api.core.v1.Container`; undefined if the table has none. */
export function structOfDefinition(name: string): StructType | undefined {
  const own = name.replace(/^(api|apimachinery\.pkg\.apis|apiextensions-apiserver\.pkg\.apis)\./, '')
  return table.structs[own] === undefined ? undefined : structNamed(own)
}

/**
 * True if Go has a type name of its own for one value that is not a struct, such as `v1.PodPhase`; messages show it.
 */
export const isNamedScalar = ({ code, goName }: Member): boolean => code !== '@' && goName !== plainNames[code]

/** `core.v1.Container` -> `v1.Container`, as Go's messages name it. */
export function goStructName(name: string): string {
  return name.split('.').slice(-2).join('.')
}

function memberOf([name, type, flags, goName, collectionName]: Row): Member {
  const code = type.slice(0, 1) as TypeCode
  const struct = code === '@' ? type.slice(1) : ''
  const list = flags.includes('r')
  const map = flags.includes('m')
  return {
    name,
    code,
    container: map ? (list ? 'mapOfLists' : 'map') : list ? 'list' : 'none',
    pointer: flags.includes('p'),
    omitEmpty: flags.includes('o'),
    omitZero: flags.includes('z'),
    ...(collectionName === undefined ? {} : { collectionName }),
    goName: goName || (code === '@' ? goStructName(struct) : (plainNames[code] ?? '')),
    struct,
  }
}
