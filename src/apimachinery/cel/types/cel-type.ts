// Static types of expressions.

export type TypeKind =
  | 'any'
  | 'bool'
  | 'bytes'
  | 'double'
  | 'duration'
  | 'dyn'
  | 'error'
  | 'int'
  | 'list'
  | 'map'
  | 'null'
  | 'opaque'
  | 'param'
  | 'string'
  | 'struct'
  | 'timestamp'
  | 'type'
  | 'uint'

export interface CelType {
  readonly kind: TypeKind
  /** The name that type() gives at run time; of a type parameter its own name. */
  readonly name: string
  readonly params: readonly CelType[]
}

const simple = (kind: TypeKind, name: string = kind): CelType => ({ kind, name, params: [] })

export const anyType = simple('any', 'google.protobuf.Any')
export const boolType = simple('bool')
export const bytesType = simple('bytes')
export const doubleType = simple('double')
export const durationType = simple('duration', 'google.protobuf.Duration')
export const dynType = simple('dyn')
export const errorType = simple('error', '*error*')
export const intType = simple('int')
export const nullType = simple('null', 'null_type')
export const stringType = simple('string')
export const timestampType = simple('timestamp', 'google.protobuf.Timestamp')
export const uintType = simple('uint')
export const typeType = simple('type')

export const listOf = (element: CelType): CelType => ({ kind: 'list', name: 'list', params: [element] })
export const mapOf = (key: CelType, value: CelType): CelType => ({ kind: 'map', name: 'map', params: [key, value] })
export const typeOf = (type: CelType): CelType => ({ kind: 'type', name: 'type', params: [type] })
export const structType = (name: string): CelType => simple('struct', name)
export const opaqueType = (name: string, ...params: CelType[]): CelType => ({ kind: 'opaque', name, params })
export const optionalOf = (type: CelType): CelType => opaqueType('optional_type', type)
export const typeParam = (name: string): CelType => simple('param', name)

export const isDyn = ({ kind }: CelType): boolean => kind === 'dyn' || kind === 'any'
export const isOptional = ({ kind, name }: CelType): boolean => kind === 'opaque' && name === 'optional_type'

/** A parameter of a type that is known to have it. */
export function paramOf({ params }: CelType, index: number): CelType {
  return params[index] ?? dynType
}

/** The same type, or one that only names its parameters differently where `namesMatter` is false. */
export function isSameType(a: CelType, b: CelType, { namesMatter = true } = {}): boolean {
  if (a === b) return true
  if (a.kind !== b.kind || a.params.length !== b.params.length) return false
  if ((namesMatter || a.kind !== 'param') && a.name !== b.name) return false
  return a.params.every((param, i) => isSameType(param, paramOf(b, i), { namesMatter }))
}

const shown: Partial<Record<TypeKind, string>> = {
  any: 'any',
  duration: 'duration',
  error: '!error!',
  null: 'null',
  timestamp: 'timestamp',
}

/** A type as messages show it: `list(map(string, int))`. */
export function printType(type: CelType): string {
  const fixed = shown[type.kind]
  if (fixed !== undefined) return fixed
  return type.params.length === 0 ? type.name : `${type.name}(${type.params.map(printType).join(', ')})`
}

/** A type under its declared name: `google.protobuf.Any` where `printType` shows `any`. */
export const printDeclaredType = ({ name, params }: CelType): string =>
  params.length === 0 ? name : `${name}(${params.map(printDeclaredType).join(', ')})`
