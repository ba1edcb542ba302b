// The body of a write as an object: decoded from JSON, YAML or protobuf, of the kind the URL says, with complaints about
// fields that the kind does not have.
import { fieldInvalid } from '../../apimachinery/field/index.ts'
import { goValue } from '../../apimachinery/text/index.ts'
import { parseJson, parseLiterals, type LiteralJson } from '../../apimachinery/json/index.ts'
import {
  apiVersionOf,
  isJsonObject,
  parseApiVersion,
  type GroupVersionKind,
  type JsonObject,
  type JsonValue,
  type KubeObject,
} from '../../apimachinery/meta/index.ts'
import { pruneUnknown, typeErrors, type SchemaNode } from '../../apimachinery/schema/index.ts'
import { goKind } from '../../apimachinery/patch/index.ts'
import { badRequest, invalid, isStatusError, unsupportedMediaType } from '../../apimachinery/status/index.ts'
import { forEmbedded } from '../apiextensions/embedded-resources.ts'
import { builtInSchema } from '../resources/builtin-schemas.ts'
import { builtInResourceOfKind } from '../resources/builtin-resources.ts'
import type { ResourceDefinition } from '../resources/resource-definition.ts'
import { completeStruct, decodeObjectMeta } from '../resources/typed/decode.ts'
import { decodeProtobuf } from './protobuf/index.ts'
import { noKindIn, unrecognized } from './unrecognized.ts'
import { parseYamlBody } from './yaml.ts'

/** Largest body read, bytes; etcd behind a real server bounds it at 1.5 MiB, its own limit is 3 MiB. */
export const maxBodyBytes = 3 * 1024 * 1024
const maxDepth = 1000

const supported = 'application/json, application/yaml, application/vnd.kubernetes.protobuf'

export type FieldValidation = 'Ignore' | 'Warn' | 'Strict'

export interface Decoded {
  readonly value: JsonValue
  /** Fields given twice, as texts. */
  readonly duplicates: readonly string[]
  /** Of JSON with numbers that are no plain integers: the value once more, with these as they are written. */
  readonly literals?: () => LiteralJson
}

/** Decodes a body by its Content-Type (JSON when absent). Throws 400 and 415. */
export function decodeBody(body: Uint8Array, contentType: string | undefined): Decoded {
  const type = (contentType ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
  switch (type) {
    case '':
    case 'application/json': {
      const { value, duplicateFields, oddNumbers } = parseJson(body, { maxDepth, maxBytes: maxBodyBytes })
      const decoded = { value, duplicates: duplicateFields }
      return oddNumbers ? { ...decoded, literals: () => parseLiterals(body) } : decoded
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

/** As decodeBody, for an endpoint that takes objects of this kind. Throws 400 also for what cannot be one. */
export function decodeObjectBody(body: Uint8Array, contentType: string | undefined, kind: string): Decoded {
  let decoded: Decoded
  try {
    decoded = decodeBody(body, contentType)
  } catch (error) {
    if (!isStatusError(error, 'BadRequest') || !isJson(contentType)) throw error
    throw unrecognized(kind, error.message, body)
  }
  const why = noKindIn(decoded.value)
  if (why !== undefined) throw unrecognized(kind, why, body)
  return decoded.value === null ? { ...decoded, value: {} } : decoded
}

const isJson = (contentType = ''): boolean => /^\s*(application\/json\s*)?(;|$)/i.test(contentType)

interface Expectation {
  readonly definition: ResourceDefinition
  /** Kind that the endpoint takes: the resource's own, or a subresource's. */
  readonly fieldValidation: FieldValidation
  readonly warnings: string[]
  /** Complain of what is given twice first: of patches, which are decoded before they are applied. */
  readonly duplicatesFirst?: boolean
}

/** The definition as an endpoint of it sees it that takes objects of another built-in kind. */
export function takingKind(definition: ResourceDefinition, kind: GroupVersionKind): ResourceDefinition {
  return { ...definition, info: { ...definition.info, ...kind, builtIn: true }, schema: builtInSchema(kind) }
}

/** The decoded body as an object of the endpoint's kind, without fields that the kind does not have. Throws 400. */
export function objectOf(
  { value, duplicates, literals }: Decoded,
  { definition, fieldValidation, warnings, duplicatesFirst = false }: Expectation,
): KubeObject {
  if (!isJsonObject(value)) throw badRequest(`the body must be an object of kind ${definition.info.kind}`)
  const object = requireKind(value, definition)
  const { schema, info } = definition
  const undecodable = `${info.kind} in version "${info.version}" cannot be handled as a ${info.kind}: `
  const metadata = object['metadata'] ?? {}
  const kept = info.builtIn ? undefined : customMetadata(object, schema, undecodable)
  if (info.builtIn && !isJsonObject(metadata))
    throw badRequest(
      `${undecodable}json: cannot unmarshal ${goKind(metadata)} into Go struct field ${info.kind}.metadata of type v1.ObjectMeta`,
    )
  object['metadata'] ??= {}
  // Who is in no namespace is told so by nobody.
  if (!info.namespaced)
    for (const members of [object['metadata'], kept])
      if (isJsonObject(members) && typeof members['namespace'] === 'string') delete members['namespace']
  const unknown: string[] = []
  if (schema !== undefined) {
    if (info.builtIn) {
      const [first] = typeErrors(literals?.() ?? object, schema)
      if (first !== undefined) throw badRequest(undecodable + first)
    }
    const dropped = pruneUnknown(object, schema, { isResourceRoot: true, typesChecked: info.builtIn })
    // The decoder of built-in kinds tells of them as it meets them.
    // A patched document comes with its members in order.
    unknown.push(
      ...(info.builtIn && !duplicatesFirst ? dropped : dropped.sort()).map((path) => `unknown field "${path}"`),
    )
    if (!info.builtIn) forEmbedded(object, schema, decodeEmbedded)
  }
  // What it does not have was told of above.
  if (kept !== undefined) object['metadata'] = kept
  // Custom resources are decoded first and pruned later; the decoder of built-in kinds meets both on its way.
  const isYaml = duplicates.some((text) => text.startsWith('line '))
  const complaints =
    info.builtIn && !isYaml && !duplicatesFirst ? [...unknown, ...duplicates] : [...duplicates, ...unknown]
  if (complaints.length > 0 && fieldValidation === 'Strict')
    throw badRequest(
      `${undecodable}strict decoding error: ${isYaml ? 'yaml: unmarshal errors:\n  ' : ''}${complaints.join(', ')}`,
    )
  if (fieldValidation === 'Warn') warnings.push(...complaints)
  return object as unknown as KubeObject
}

/** Metadata as it is kept. Throws 400 where it has values of the wrong type, there or in an object embedded in this one. */
function customMetadata(object: JsonObject, schema: SchemaNode | undefined, undecodable: string): JsonObject {
  const own = decodeObjectMeta(object['metadata'] ?? {})
  if (typeof own === 'string') throw badRequest(undecodable + own)
  if (schema !== undefined)
    forEmbedded(object, schema, ({ metadata }, path) => {
      const decoded = metadata === undefined || metadata === null ? {} : decodeObjectMeta(metadata)
      if (typeof decoded === 'string' && metadata !== undefined)
        throw badRequest(`${undecodable}${path}.metadata: Invalid value: ${goValue(metadata)}: ${decoded}`)
    })
  return own
}

/** Metadata of an embedded object is kept as Go prints it: nothing that is empty. */
function decodeEmbedded(embedded: JsonObject): void {
  const { metadata } = embedded
  if (isJsonObject(metadata)) embedded['metadata'] = completeStruct('meta.v1.ObjectMeta', metadata)
}

/** What the endpoint takes, as its body may say; absent is the same. Throws 400. */
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
    known || (kind === 'List' && apiVersion === 'v1')
      ? `converting (${version}.${kind}) to (${goPackage(info.group)}.${info.kind}): unknown conversion`
      : `no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)}`
  throw badRequest(`${kind} in version ${JSON.stringify(version)} cannot be handled as a ${info.kind}: ${why}`)
}

/** The Go package of the internal types of a group, as messages show it. */
export function goPackage(group: string): string {
  return group === '' ? 'core' : (group.split('.')[0] ?? group)
}

/** A custom resource must say itself what it is. */
function requireCustomKind(
  object: JsonObject,
  info: Pick<ResourceDefinition['info'], 'group' | 'version' | 'kind'>,
): JsonObject {
  const { kind, apiVersion = '', metadata } = object
  if (typeof kind !== 'string' || kind === '') {
    const text = JSON.stringify(object)
    const start = text.length > 24 ? `${text.slice(0, 24)} ...` : text
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

/** Absent and empty mean what the URL says. */
function textOr(value: JsonValue | undefined, fallback: string): string {
  if (value === undefined || value === null || value === '') return fallback
  return typeof value === 'string' ? value : JSON.stringify(value)
}
