// Encodes an OpenAPI v2 document as the protobuf message `openapi.v2.Document` (github.com/google/gnostic-models),
// which client-go requests. Field numbers are those of OpenAPIv2.proto. Fields are written in the order of their
// numbers, maps in the order of the document.
import type { Buffer } from 'node:buffer'
import { encodeJson, isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { ProtoWriter } from './proto-writer.ts'

/** Writes a JSON value as the field's message or scalar. */
type Write = (writer: ProtoWriter, field: number, value: JsonValue) => void
type Row = readonly [number, string, Write]

const string: Write = (writer, field, value) => writer.string(field, textOf(value))
const bool: Write = (writer, field, value) => writer.bool(field, value === true)
const int64: Write = (writer, field, value) => writer.int64(field, Number(value))
const double: Write = (writer, field, value) => writer.double(field, Number(value))
const strings: Write = (writer, field, value) => {
  // These are written as bytes, because `string` would leave out an empty string.
  for (const item of arrayOf(value)) writer.bytes(field, new TextEncoder().encode(textOf(item)))
}
const any: Write = (writer, field, value) => writer.bytes(field, anyMessage(value))
const anys: Write = (writer, field, value) => {
  for (const item of arrayOf(value)) any(writer, field, item)
}
const each =
  (write: Write): Write =>
  (writer, field, value) => {
    for (const item of arrayOf(value)) write(writer, field, item)
  }
/** A message with these fields; `extensions`: the number of the field for members that start with `x-`; 0: none. */
const message =
  (rows: () => readonly Row[], { extensions = 0 }: { extensions?: number } = {}): Write =>
  (writer, field, value) =>
    writer.bytes(field, fieldsOf(objectOf(value), rows(), extensions))
/** A message with a value in its field `inner`. */
const wrapped =
  (inner: number, write: Write): Write =>
  (writer, field, value) => {
    const own = new ProtoWriter()
    write(own, inner, value)
    writer.bytes(field, own.finish())
  }
/** A message whose field `inner` is a list of name/value pairs. */
const pairs =
  (inner: number, write: Write, { extensions = 0 }: { extensions?: number } = {}): Write =>
  (writer, field, value) => {
    const own = new ProtoWriter()
    const entries = Object.entries(objectOf(value))
    // The lower field number first. `extensions` may be before or after `inner`.
    const writeExtensions = (): void => namedAnys(own, extensions, entries)
    if (extensions > 0 && extensions < inner) writeExtensions()
    for (const [name, item] of entries) {
      if (extensions > 0 && name.startsWith('x-')) continue
      const pair = new ProtoWriter()
      pair.string(1, name)
      write(pair, 2, item)
      own.bytes(inner, pair.finish())
    }
    if (extensions > inner) writeExtensions()
    writer.bytes(field, own.finish())
  }

const additionalProperties: Write = (writer, field, value) => {
  const own = new ProtoWriter()
  if (typeof value === 'boolean') own.bool(2, value, { always: true })
  else schema(own, 1, value)
  writer.bytes(field, own.finish())
}

const schema: Write = message(() => schemaRows, { extensions: 31 })
const schemaRows: readonly Row[] = [
  [1, '$ref', string],
  [2, 'format', string],
  [3, 'title', string],
  [4, 'description', string],
  [5, 'default', any],
  [6, 'multipleOf', double],
  [7, 'maximum', double],
  [8, 'exclusiveMaximum', bool],
  [9, 'minimum', double],
  [10, 'exclusiveMinimum', bool],
  [11, 'maxLength', int64],
  [12, 'minLength', int64],
  [13, 'pattern', string],
  [14, 'maxItems', int64],
  [15, 'minItems', int64],
  [16, 'uniqueItems', bool],
  [17, 'maxProperties', int64],
  [18, 'minProperties', int64],
  [19, 'required', strings],
  [20, 'enum', anys],
  [21, 'additionalProperties', additionalProperties],
  [22, 'type', wrapped(1, strings)],
  [23, 'items', wrapped(1, each(schema))],
  [24, 'allOf', each(schema)],
  [25, 'properties', pairs(1, schema)],
  [26, 'discriminator', string],
  [27, 'readOnly', bool],
  [30, 'example', any],
]

/** The keywords of OpenAPI v2 schemas, besides those that start with `x-`. */
export const schemaKeywords: ReadonlySet<string> = new Set(schemaRows.map(([, name]) => name))

/** Fields of a parameter that describe its value, numbered from `first`. */
const valueRows = (first: number): Row[] =>
  (
    [
      ['type', string],
      ['format', string],
      ['items', () => undefined],
      ['collectionFormat', string],
      ['default', any],
      ['maximum', double],
      ['exclusiveMaximum', bool],
      ['minimum', double],
      ['exclusiveMinimum', bool],
      ['maxLength', int64],
      ['minLength', int64],
      ['pattern', string],
      ['maxItems', int64],
      ['minItems', int64],
      ['uniqueItems', bool],
      ['enum', anys],
      ['multipleOf', double],
    ] as const
  ).map(([name, write], index) => [first + index, name, write])

const parameterRows: readonly Row[] = [
  [1, 'required', bool],
  [2, 'in', string],
  [3, 'description', string],
  [4, 'name', string],
]
const bodyParameter = message(
  () => [
    [1, 'description', string],
    [2, 'name', string],
    [3, 'in', string],
    [4, 'required', bool],
    [5, 'schema', schema],
  ],
  { extensions: 6 },
)
/** Query parameters also have the field `allowEmptyValue`, so the numbers of their later fields are higher by one. */
const plainParameter = message(() => [...parameterRows, ...valueRows(5)], { extensions: 22 })
const queryParameter = message(() => [...parameterRows, [5, 'allowEmptyValue', bool], ...valueRows(6)], {
  extensions: 23,
})
const jsonReference = message(() => [
  [1, '$ref', string],
  [2, 'description', string],
])

const parameter: Write = (writer, field, value) => {
  const own = new ProtoWriter()
  const location = objectOf(value)['in']
  if (location === 'body') bodyParameter(own, 1, value)
  else if (location === 'query') wrapped(3, queryParameter)(own, 2, value)
  else if (location === 'formData') wrapped(2, queryParameter)(own, 2, value)
  else wrapped(location === 'header' ? 1 : 4, plainParameter)(own, 2, value)
  writer.bytes(field, own.finish())
}
const orReference =
  (write: Write): Write =>
  (writer, field, value) =>
    (typeof objectOf(value)['$ref'] === 'string' ? wrapped(2, jsonReference) : wrapped(1, write))(writer, field, value)
const parameters = each(orReference(parameter))

const response = message(
  () => [
    [1, 'description', string],
    [2, 'schema', wrapped(1, schema)],
  ],
  { extensions: 5 },
)
const requirement = pairs(1, wrapped(1, strings))
const operation = message(
  () => [
    [1, 'tags', strings],
    [2, 'summary', string],
    [3, 'description', string],
    [5, 'operationId', string],
    [6, 'produces', strings],
    [7, 'consumes', strings],
    [8, 'parameters', parameters],
    [9, 'responses', pairs(1, orReference(response), { extensions: 2 })],
    [10, 'schemes', strings],
    [11, 'deprecated', bool],
    [12, 'security', each(requirement)],
  ],
  { extensions: 13 },
)
const pathItem = message(
  () => [
    [1, '$ref', string],
    [2, 'get', operation],
    [3, 'put', operation],
    [4, 'post', operation],
    [5, 'delete', operation],
    [6, 'options', operation],
    [7, 'head', operation],
    [8, 'patch', operation],
    [9, 'parameters', parameters],
  ],
  { extensions: 10 },
)
const apiKey = message(
  () => [
    [1, 'type', string],
    [2, 'name', string],
    [3, 'in', string],
    [4, 'description', string],
  ],
  { extensions: 5 },
)

const documentRows: readonly Row[] = [
  [1, 'swagger', string],
  [
    2,
    'info',
    message(() => [
      [1, 'title', string],
      [2, 'version', string],
      [3, 'description', string],
    ]),
  ],
  [5, 'schemes', strings],
  [6, 'consumes', strings],
  [7, 'produces', strings],
  [8, 'paths', pairs(2, pathItem, { extensions: 1 })],
  [9, 'definitions', pairs(1, schema)],
  [10, 'parameters', pairs(1, parameter)],
  [12, 'security', each(requirement)],
  [13, 'securityDefinitions', pairs(1, wrapped(2, apiKey))],
]

/** Encodes a document or a part of one; the concatenation of encoded parts is the message of the whole document. */
export function encodeOpenApiV2(document: JsonObject): Buffer {
  return fieldsOf(document, documentRows, 16)
}

function fieldsOf(value: JsonObject, rows: readonly Row[], extensions: number): Buffer {
  const writer = new ProtoWriter()
  for (const [field, name, write] of rows) {
    const item = value[name]
    if (item !== undefined) write(writer, field, item)
  }
  // Extensions have the highest number in all of these messages.
  if (extensions > 0) namedAnys(writer, extensions, Object.entries(value))
  return writer.finish()
}

function namedAnys(writer: ProtoWriter, field: number, entries: readonly (readonly [string, JsonValue])[]): void {
  for (const [name, value] of entries) {
    if (!name.startsWith('x-')) continue
    const named = new ProtoWriter()
    named.string(1, name)
    any(named, 2, value)
    writer.bytes(field, named.finish())
  }
}

/** The message `Any`, whose value is YAML: JSON in which the characters that YAML does not allow are escaped. */
function anyMessage(value: JsonValue): Buffer {
  const writer = new ProtoWriter()
  const yaml = JSON.stringify(value).replace(
    /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  writer.string(2, `${yaml}\n`)
  return writer.finish()
}

function textOf(value: JsonValue): string {
  return typeof value === 'string' ? value : encodeJson(value)
}

function objectOf(value: JsonValue): JsonObject {
  return isJsonObject(value) ? value : {}
}

function arrayOf(value: JsonValue): readonly JsonValue[] {
  return Array.isArray(value) ? value : [value]
}
