// Encodes responses: documents as JSON, YAML or indented JSON, and errors as Status.
import { goFloat } from '#apimachinery/text/index.ts'
import { parseJsonText } from '#apimachinery/json/index.ts'
import { Buffer } from 'node:buffer'
import { stringify, type ScalarTag, type Tags } from 'yaml'
import { encodeJson, isJsonObject } from '#apimachinery/meta/index.ts'
import type { Status, StatusError } from '#apimachinery/status/index.ts'
import type { BytesResponse, Chunks, ChunkedResponse } from '#virtualapi/request/exchange.ts'
import { minChunkedBytes } from './list-chunks.ts'
import { encodeProtobuf } from './protobuf/index.ts'

const newline = Buffer.from('\n')

interface ResponseOptions {
  status?: number
  headers?: Record<string, string>
}

/** A response with JSON that is already encoded. */
export function jsonBytes(bytes: Uint8Array, { status = 200, headers = {} }: ResponseOptions = {}): BytesResponse {
  return {
    kind: 'bytes',
    status,
    headers: { 'content-type': 'application/json', ...headers },
    body: bytes.at(-1) === 0x0a ? bytes : Buffer.concat([bytes, newline]),
  }
}

/** 304 Not Modified: the headers that identify the content, without a body. */
export function notModified(headers: Readonly<Record<string, string>>): BytesResponse {
  const { 'content-type': _, ...rest } = headers
  return { kind: 'bytes', status: 304, headers: rest, body: new Uint8Array() }
}

/**
 * Responses above this many bytes count against the client until the client has read them; smaller responses fit into
 * socket buffers.
 */
export const largeResponseBytes = 256 * 1024

/**
 * A response with a list as chunks of JSON. The chunks are joined into one body if the list is small and cheap to
 * encode. `bytes`: the approximate total.
 */
export function jsonChunks(chunks: Chunks, bytes: number): BytesResponse | ChunkedResponse {
  const response: ChunkedResponse = {
    kind: 'chunks',
    status: 200,
    headers: { 'content-type': 'application/json' },
    chunks,
    about: bytes,
  }
  return bytes > minChunkedBytes || chunks.isCostly === true ? response : joinChunks(response)
}

/** The same response with its chunks joined into one body. */
function joinChunks({ status, headers, chunks }: ChunkedResponse): BytesResponse {
  const [first, ...rest] = chunks
  const body = first !== undefined && rest.length === 0 ? first : Buffer.concat([...(first ? [first] : []), ...rest])
  return { kind: 'bytes', status, headers, body }
}

/** A response with a document as JSON. */
export function jsonDocument(document: unknown, options: ResponseOptions = {}): BytesResponse {
  return jsonBytes(Buffer.from(`${encodeJson(document)}\n`), options)
}

/** The form of a reformatted response. */
export interface ReadableForm {
  readonly format: 'json' | 'yaml' | 'protobuf'
  readonly pretty: boolean
}

/**
 * Reformats a JSON response as protobuf (if its kind has such a form), YAML or indented JSON, if the form asks for
 * this. It decodes the response, so it is slow.
 */
export function reformat(response: BytesResponse, { format, pretty }: ReadableForm): BytesResponse {
  if ((format === 'json' && !pretty) || response.headers['content-type'] !== 'application/json') return response
  const document: unknown = parseJsonText(Buffer.from(response.body).toString())
  if (format === 'protobuf') {
    const body = isJsonObject(document) ? encodeProtobuf(document) : undefined
    return body === undefined ? response : protobufBytes(response, body)
  }
  const text = format === 'yaml' ? stringify(document, yamlOptions) : `${JSON.stringify(document, null, 2)}\n`
  const type = format === 'yaml' ? 'application/yaml' : 'application/json'
  return { ...response, headers: { ...response.headers, 'content-type': type }, body: Buffer.from(text) }
}

/**
 * True for a number that YAML shows without an exponent. Go decodes the JSON again, and prints every number with an
 * exponent unless it is an integer of 64 bits, signed or unsigned.
 */
function isPrintedWhole(value: number): boolean {
  return Number.isInteger(value) && (Math.abs(value) < 2 ** 53 || (value > 0 && value < 2 ** 64))
}

const yamlFloat: ScalarTag = {
  default: true,
  tag: 'tag:yaml.org,2002:float',
  identify: (value) => typeof value === 'number' && !isPrintedWhole(value),
  // This pattern matches no number, because the tags of other numbers have patterns and take precedence.
  test: /^$/,
  resolve: Number,
  stringify: ({ value }) => goFloat(Number(value)),
}
const yamlOptions = { customTags: (tags: Tags) => [yamlFloat, ...tags] }

/** The same response with this body as protobuf. */
function protobufBytes(response: BytesResponse, body: Uint8Array): BytesResponse {
  return { ...response, headers: { ...response.headers, 'content-type': 'application/vnd.kubernetes.protobuf' }, body }
}

/** The response for an error: a Status, or plain text for the errors that kube-apiserver sends as text. */
export function errorResponse({ status, headers, text }: StatusError): BytesResponse {
  if (text === undefined) return statusResponse(status, headers)
  const response = textResponse(text, status.code)
  return { ...response, headers: { ...response.headers, ...headers } }
}

export function statusResponse(status: Status, headers: Readonly<Record<string, string>> = {}): BytesResponse {
  return jsonDocument(status, { status: status.code, headers: { ...headers } })
}

export function textResponse(text: string, status = 200): BytesResponse {
  return {
    kind: 'bytes',
    status,
    headers: { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' },
    body: Buffer.from(text),
  }
}
