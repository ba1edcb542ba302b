// The conformance suites of CEL's specification, from the test data of @bufbuild/cel-spec.
import { tests as suites } from '@bufbuild/cel-spec/testdata/conformance.js'
import {
  ArrayList,
  boolType,
  bytesType,
  CelDouble,
  CelDuration,
  CelError,
  type CelType,
  CelTypeValue,
  CelUint,
  compileExpression,
  doubleType,
  durationType,
  dynType,
  EntryMap,
  extendEnvironment,
  type FunctionDeclaration,
  intType,
  kubernetesEnvironment,
  listOf,
  mapOf,
  nullType,
  opaqueType,
  optionalOf,
  member,
  overload,
  printType,
  printValue,
  Program,
  stringType,
  structType,
  timestampType,
  typeOf,
  typeParam,
  uintType,
  type Value,
} from '#apimachinery/cel/index.ts'
import { showValue } from '#test/parity/cel/show-value.ts'

interface Suite {
  readonly name: string
  readonly suites?: readonly Suite[]
  readonly tests?: readonly { readonly original: unknown }[]
}

type Json = Readonly<Record<string, unknown>>

export interface ConformanceTest {
  readonly suite: string
  readonly section: string
  readonly name: string
  readonly expression: string
  readonly source: Json
}

const json = (value: unknown): Json => (typeof value === 'object' && value !== null ? (value as Json) : {})
const text = (value: unknown): string => (typeof value === 'string' ? value : '')
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** All tests, in the order of the suites. */
export function conformanceTests(): ConformanceTest[] {
  const found: ConformanceTest[] = []
  const reconcile = (suite: Suite, path: readonly string[]): void => {
    for (const { original } of suite.tests ?? []) {
      const source = json(original)
      const [name = '', section = ''] = path
      found.push({ suite: name, section, name: text(source.name), expression: text(source.expr), source })
    }
    for (const inner of suite.suites ?? []) reconcile(inner, [...path, inner.name])
  }
  reconcile(suites, [])
  return found
}

const primitives: Readonly<Record<string, CelType>> = {
  BOOL: boolType,
  INT64: intType,
  UINT64: uintType,
  DOUBLE: doubleType,
  STRING: stringType,
  BYTES: bytesType,
}

/** A type of the specification's messages. Throws for those that have no counterpart here. */
export function readType(source: unknown): CelType {
  const type = json(source)
  if (typeof type.primitive === 'string') return primitives[type.primitive] ?? dynType
  if ('dyn' in type) return dynType
  if ('null' in type) return nullType
  if (type.wellKnown === 'TIMESTAMP') return timestampType
  if (type.wellKnown === 'DURATION') return durationType
  if ('listType' in type) return listOf(readType(json(type.listType).elemType))
  if ('mapType' in type) return mapOf(readType(json(type.mapType).keyType), readType(json(type.mapType).valueType))
  if ('type' in type) return typeOf(readType(type.type))
  if ('typeParam' in type) return typeParam(text(type.typeParam))
  if ('abstractType' in type) {
    const { name, parameterTypes } = json(type.abstractType)
    const params = list(parameterTypes).map(readType)
    return name === 'optional_type' && params[0] !== undefined
      ? optionalOf(params[0])
      : opaqueType(text(name), ...params)
  }
  if (type.messageType === 'google.protobuf.Duration') return durationType
  if (type.messageType === 'google.protobuf.Timestamp') return timestampType
  if ('messageType' in type) return structType(text(type.messageType))
  return dynType
}

// A function that can be named and not called.
function readFunction(declared: Json): FunctionDeclaration {
  const overloads = list(json(declared.function).overloads).map((source) => {
    const { overloadId, params, resultType, isInstanceFunction } = json(source)
    const declare = isInstanceFunction === true ? member : overload
    return declare(
      text(overloadId),
      list(params).map(readType),
      readType(resultType),
      () => new CelError('not callable'),
    )
  })
  return { name: text(declared.name), overloads }
}

/** A value of the specification's messages. Throws for protobuf messages. */
export function readValue(source: unknown): Value {
  const value = json(source)
  if ('nullValue' in value) return null
  if ('boolValue' in value) return value.boolValue === true
  if ('stringValue' in value) return text(value.stringValue)
  if ('int64Value' in value) return readInt(value.int64Value)
  if ('uint64Value' in value) return new CelUint(BigInt(String(value.uint64Value)))
  if ('doubleValue' in value) return new CelDouble(Number(value.doubleValue))
  if ('bytesValue' in value) return Buffer.from(text(value.bytesValue), 'base64')
  if ('typeValue' in value) return new CelTypeValue(text(value.typeValue))
  if ('listValue' in value) return new ArrayList(list(json(value.listValue).values).map(readValue))
  if ('mapValue' in value) {
    const map = new EntryMap()
    for (const entry of list(json(value.mapValue).entries))
      map.set(readValue(json(entry).key), readValue(json(entry).value))
    return map
  }
  const { '@type': type, value: seconds } = json(value.objectValue)
  if (type === 'type.googleapis.com/google.protobuf.Duration') return readDuration(text(seconds))
  throw new Error('a protobuf message')
}

function readDuration(seconds: string): Value {
  const [whole = '0', fraction = ''] = seconds.replace('s', '').split('.')
  return new CelDuration(BigInt(whole) * 1_000_000_000n + BigInt(fraction.padEnd(9, '0')))
}

function readInt(value: unknown): Value {
  const int = BigInt(String(value))
  return Number.isSafeInteger(Number(int)) ? Number(int) : int
}

/** What is wrong with our answer to a test; undefined where it is right. */
export function runConformanceTest({ expression, source }: ConformanceTest): string | undefined {
  const variables: Record<string, CelType> = {}
  const functions: FunctionDeclaration[] = []
  for (const declared of list(source.typeEnv).map(json))
    if ('ident' in declared) variables[text(declared.name)] = readType(json(declared.ident).type)
    else if ('function' in declared) functions.push(readFunction(declared))
  const environment = extendEnvironment(kubernetesEnvironment(), {
    variables,
    functions,
    container: text(source.container),
    homogeneousLiterals: false,
    bindings: true,
  })
  const program = compileExpression(expression, environment)
  const failure = 'evalError' in source
  if (!(program instanceof Program)) return failure ? undefined : program.message
  const { deducedType } = json(source.typedResult)
  if (deducedType !== undefined && printType(readType(deducedType)) !== printType(program.outputType))
    return `expected type ${printType(readType(deducedType))}, got ${printType(program.outputType)}`
  if (source.checkOnly === true) return undefined
  const values = new Map<string, Value>()
  for (const [name, binding] of Object.entries(json(source.bindings))) values.set(name, readValue(json(binding).value))
  const { value, error } = program.run(values)
  if (failure) return error === undefined ? `expected an error, got ${showValue(value ?? null)}` : undefined
  if (error !== undefined) return error
  const expected = 'typedResult' in source ? json(source.typedResult).result : source.value
  const want = showValue(expected === undefined ? true : readValue(expected))
  const got = showValue(value ?? null)
  return got === want ? undefined : `expected ${want}, got ${got} (${printValue(value ?? null)})`
}
