// Decodes the body of a write from JSON, YAML or protobuf to an object of the endpoint's kind, and reports unknown and
// duplicate fields.
import { fieldInvalid } from '#apimachinery/field/index.ts'
import { goValue } from '#apimachinery/text/index.ts'
import { parseJson, parseLiterals, type LiteralJson } from '#apimachinery/json/index.ts'
import {
  apiVersionOf,
  isJsonObject,
  parseApiVersion,
  type GroupVersionKind,
  type JsonObject,
  type JsonValue,
  type KubeObject,
} from '#apimachinery/meta/index.ts'
import { pruneUnknown, takeQuantityTexts, typeErrors, type SchemaNode } from '#apimachinery/schema/index.ts'
import { goKind } from '#apimachinery/patch/index.ts'
import { badRequest, invalid, isStatusError, unsupportedMediaType } from '#apimachinery/status/index.ts'
import { forEmbedded } from '#virtualapi/kinds/resources/embedded-resources.ts'
import { builtInSchema } from '#virtualapi/kinds/resources/builtin-schemas.ts'
import { builtInResourceOfKind } from '#virtualapi/kinds/resources/builtin-resources.ts'
import type { ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'
import { DecodeError, UndecodableError, type BodyFault } from '#virtualapi/kinds/resources/typed/decode-errors.ts'
import { completeStruct, decodeObjectMeta } from '#virtualapi/kinds/resources/typed/decode.ts'
import { decodeProtobuf } from './protobuf/index.ts'
import { kindError, unrecognized } from './unrecognized.ts'
import { parseYamlBody } from './yaml.ts'

/** Maximum size of a body, bytes; as in kube-apiserver (where etcd refuses objects above 1.5 MiB anyway). */
export const maxBodyBytes = 3 * 1024 * 1024
const maxDepth = 1000

const supported = 'application/json, application/yaml, application/vnd.kubernetes.protobuf'

export type FieldValidation = 'Ignore' | 'Warn' | 'Strict'

export interface Decoded {
  readonly value: JsonValue
  /** Messages about duplicate fields. */
  readonly duplicates: readonly string[]
  /**
   * Parses the JSON again and keeps its numbers as they are written. Present only for JSON with numbers that are not
   * plain integers.
   */
  readonly literals?: () => LiteralJson
  /** The text of a number that is too large for a double. Go refuses the body when it reads the number. */
  readonly infinite?: string
}

/**
 * Maximum size of a body with objects of a snapshot: a stored object of the largest size, and what a restore sends around
 * it.
 */
export const maxObjectsBytes = maxBodyBytes + 64 * 1024
/** A stored object has more values than its writer may send: its managedFields name each field once more. */
const maxObjectsValues = 500_000

/** Decodes the JSON of a body with objects of a snapshot. Throws 400 and 413. */
export function decodeObjects(body: Uint8Array): JsonValue {
  return parseJson(body, { maxDepth: maxDepth + 10, maxBytes: maxObjectsBytes, maxValues: maxObjectsValues }).value
}

/** Decodes a body by its Content-Type (JSON when absent). Throws 400 and 415. */
export function decodeBody(body: Uint8Array, contentType: string | undefined): Decoded {
  const type = (contentType ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
  switch (type) {
    case '':
    case 'application/json': {
      const { value, duplicateFields, oddNumbers, infinite } = parseJson(body, { maxDepth, maxBytes: maxBodyBytes })
      const decoded = { value, duplicates: duplicateFields }
      if (!oddNumbers) return decoded
      return { ...decoded, literals: () => parseLiterals(body), ...(infinite === undefined ? {} : { infinite }) }
    }
    case 'application/yaml': {
      const { value, duplicateFields } = parseYamlBody(body, { maxDepth, maxBytes: maxBodyBytes })
      return { value, duplicates: duplicateFields }
    }
    case 'application/vnd.kubernetes.protobuf': {
      const { apiVersion, kind, object } = decodeProtobuf(body)
      return { value: { ...object, kind, apiVersion }, duplicates: [] }
    }
    default:
      throw unsupportedMediaType(
        `the body of the request was in an unknown format - accepted media types include: ${supported}`,
      )
  }
}

/** As decodeBody, for an endpoint that takes objects of this kind. Throws 400 also if the kind cannot be read. */
export function decodeObjectBody(body: Uint8Array, contentType: string | undefined, kind: string): Decoded {
  let decoded: Decoded
  try {
    decoded = decodeBody(body, contentType)
  } catch (error) {
    if (!isStatusError(error, 'BadRequest') || !isJson(contentType)) throw error
    throw unrecognized(kind, error.message, body)
  }
  const why = kindError(decoded.value)
  if (why !== undefined) throw unrecognized(kind, why, body)
  return decoded.value === null ? { ...decoded, value: {} } : decoded
}

const isJson = (contentType = ''): boolean => /^\s*(application\/json\s*)?(;|$)/i.test(contentType)

interface Expectation {
  /** The definition of the resource, or the result of `withKind` for a subresource. */
  readonly definition: ResourceDefinition
  /** Ignore, warn about or refuse unknown and duplicate fields. */
  readonly fieldValidation: FieldValidation
  readonly warnings: string[]
  /** True: report duplicate fields before unknown ones, because upstream decodes a patch before it applies it. */
  readonly duplicatesFirst?: boolean
}

/** The definition with another built-in kind, for a subresource that takes objects of that kind. */
export function withKind(definition: ResourceDefinition, kind: GroupVersionKind): ResourceDefinition {
  return { ...definition, info: { ...definition.info, ...kind, builtIn: true }, schema: builtInSchema(kind) }
}

/** The decoded body as an object of the endpoint's kind, without unknown fields. Throws 400. */
export function objectOf(
  { value, duplicates, literals, infinite }: Decoded,
  { definition, fieldValidation, warnings, duplicatesFirst = false }: Expectation,
): KubeObject {
  if (!isJsonObject(value)) throw badRequest(`the body must be an object of kind ${definition.info.kind}`)
  const object = requireKind(value, definition)
  const { schema, info } = definition
  const undecodable = (fault: BodyFault, why: string): Error =>
    new UndecodableError(fault, why, { given: `${info.kind} in version "${info.version}"`, expected: info.kind })
  if (infinite !== undefined && !info.builtIn) throw undecodable('type', infiniteText(infinite))
  const metadata = object['metadata'] ?? {}
  const kept = info.builtIn ? undefined : customMetadata(object, schema, undecodable)
  if (info.builtIn && !isJsonObject(metadata))
    throw undecodable(
      'type',
      `json: cannot unmarshal ${goKind(metadata)} into Go struct field ${info.kind}.metadata of type v1.ObjectMeta`,
    )
  object['metadata'] ??= {}
  // Drop metadata.namespace of cluster-scoped objects, as upstream does, without a warning.
  if (!info.namespaced)
    for (const members of [object['metadata'], kept])
      if (isJsonObject(members) && typeof members['namespace'] === 'string') delete members['namespace']
  const unknown: string[] = []
  if (schema !== undefined) {
    if (info.builtIn) {
      const written = literals?.()
      const [first] = typeErrors(written ?? object, schema)
      if (first !== undefined) throw undecodable('type', first)
      if (written !== undefined) takeQuantityTexts(object, written, schema)
    }
    const dropped = pruneUnknown(object, schema, { isResourceRoot: true, typesChecked: info.builtIn })
    // Upstream reports unknown fields of built-in kinds in the order of the body, and unknown fields of patches and
    // custom resources in sorted order.
    unknown.push(
      ...(info.builtIn && !duplicatesFirst ? dropped : dropped.sort()).map((path) => `unknown field "${path}"`),
    )
    if (!info.builtIn) forEmbedded(object, schema, decodeEmbedded)
  }
  // Unknown fields of the metadata were reported above.
  if (kept !== undefined) object['metadata'] = kept
  // Upstream reports unknown fields of built-in kinds first; for custom resources it finds them later, when it prunes.
  const isYaml = duplicates.some((text) => text.startsWith('line '))
  const messages =
    info.builtIn && !isYaml && !duplicatesFirst ? [...unknown, ...duplicates] : [...duplicates, ...unknown]
  if (messages.length > 0 && fieldValidation === 'Strict')
    throw undecodable(
      'field',
      `strict decoding error: ${isYaml ? 'yaml: unmarshal errors:\n  ' : ''}${messages.join(', ')}`,
    )
  if (fieldValidation === 'Warn') warnings.push(...messages)
  return object as unknown as KubeObject
}

/** Go's error for a number that no double can hold. */
export function infiniteText(literal: string, where = 'Go value'): string {
  return `json: cannot unmarshal number ${literal} into ${where} of type float64`
}

/**
 * The decoded metadata. Throws 400 for values of a wrong type in the metadata, or in the kind, apiVersion and metadata
 * of an embedded object.
 */
function customMetadata(
  object: JsonObject,
  schema: SchemaNode | undefined,
  undecodable: (fault: BodyFault, why: string) => Error,
): JsonObject {
  const given = object['metadata']
  const own = decodeObjectMeta(given ?? {})
  if (own instanceof DecodeError) throw undecodable(own.isWrongType ? 'type' : 'other', own.message)
  // An empty list differs from an absent one: it removes all owners of fields.
  const managedFields = isJsonObject(given) ? given['managedFields'] : undefined
  if (Array.isArray(managedFields) && managedFields.length === 0) own['managedFields'] = []
  if (schema !== undefined)
    forEmbedded(object, schema, ({ metadata, ...embedded }, path) => {
      for (const field of ['apiVersion', 'kind']) {
        const value = embedded[field]
        if (value !== undefined && typeof value !== 'string')
          throw undecodable('other', `${path}.${field}: Invalid value: ${goValue(value)}: must be a string`)
      }
      const decoded = metadata === undefined || metadata === null ? {} : decodeObjectMeta(metadata)
      if (decoded instanceof DecodeError && metadata !== undefined)
        throw undecodable('other', `${path}.metadata: Invalid value: ${goValue(metadata)}: ${decoded.message}`)
    })
  return own
}

/** Decodes the metadata of an embedded object as Go does: empty fields are dropped, and null is empty. */
function decodeEmbedded(embedded: JsonObject): void {
  const { metadata } = embedded
  if (isJsonObject(metadata)) embedded['metadata'] = completeStruct('meta.v1.ObjectMeta', metadata)
  else if (metadata === null) embedded['metadata'] = {}
}

/**
 * Throws 400 unless kind and apiVersion are those of the endpoint; an object of a built-in kind may omit them. Returns
 * the object with both.
 */
export function requireKind(
  object: JsonObject,
  { info }: { readonly info: Pick<ResourceDefinition['info'], 'builtIn' | 'group' | 'version' | 'kind'> },
): JsonObject {
  const expected = apiVersionOf(info)
  if (!info.builtIn) return requireCustomKind(object, info)
  const kind = textOr(object['kind'], info.kind)
  const apiVersion = textOr(object['apiVersion'], expected)
  if (kind === info.kind && apiVersion === expected) return { ...object, kind, apiVersion }
  const { group, version } = parseApiVersion(apiVersion)
  const known = builtInResourceOfKind({ group, version, kind: kind.replace(/List$/, '') || kind }) !== undefined
  const why =
    known || ((kind === 'List' || kind === 'Status') && apiVersion === 'v1')
      ? `converting (${version}.${kind}) to (${goPackage(info.group)}.${info.kind}): unknown conversion`
      : `no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)}`
  throw new UndecodableError('other', why, {
    given: `${kind} in version ${JSON.stringify(version)}`,
    expected: info.kind,
  })
}

/** The Go package of the internal types of a group, for messages. */
export function goPackage(group: string): string {
  return group === '' ? 'core' : (group.split('.')[0] ?? group)
}

/** Throws 400 or 422 unless a custom resource has its kind and apiVersion. */
function requireCustomKind(
  object: JsonObject,
  info: Pick<ResourceDefinition['info'], 'group' | 'version' | 'kind'>,
): JsonObject {
  const { kind, apiVersion = '', metadata } = object
  if (typeof kind !== 'string' || kind === '') {
    const text = JSON.stringify(object)
    const start = text.length > 30 ? `${text.slice(0, 30)} ...` : text
    throw badRequest(
      `the object provided is unrecognized (must be of type ${info.kind}): Object 'Kind' is missing in '${text}' (${start})`,
    )
  }
  const expected = apiVersionOf(info)
  if (apiVersion !== expected)
    throw badRequest(
      `the API version in the data (${textOr(apiVersion, '')}) does not match the expected API version (${expected})`,
    )
  if (kind === info.kind) return { ...object }
  const name = isJsonObject(metadata) && typeof metadata['name'] === 'string' ? metadata['name'] : ''
  throw invalid({ group: info.group, kind }, name, [fieldInvalid('kind', kind, `must be ${info.kind}`)])
}

/** The text; `fallback` if it is absent or empty. */
function textOr(value: JsonValue | undefined, fallback: string): string {
  if (value === undefined || value === null || value === '') return fallback
  return typeof value === 'string' ? value : JSON.stringify(value)
}
