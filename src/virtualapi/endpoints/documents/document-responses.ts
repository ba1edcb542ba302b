// Responses with discovery documents: as they are, or with an ETag.
import { parseJsonText } from '#apimachinery/json/index.ts'
import type { Buffer } from 'node:buffer'
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { notModified } from '#virtualapi/codec/responses.ts'
import { encodeProtobuf } from '#virtualapi/codec/protobuf/index.ts'
import { aggregatedContentTypes, matchesEtag, type DiscoveryDocument } from '#virtualapi/discovery/index.ts'
import type { ApiResponse, Exchange } from '#virtualapi/request/exchange.ts'

/** The document as JSON. */
export function plain({ body }: Pick<DiscoveryDocument, 'body'>): ApiResponse {
  return { kind: 'bytes', status: 200, headers: { 'content-type': 'application/json' }, body }
}

const inProtobuf = new WeakMap<DiscoveryDocument, Buffer>()

/** The document of aggregated discovery in this format, with its ETag; 304 if the client has it. */
export function aggregatedResponse(
  exchange: Exchange,
  document: DiscoveryDocument,
  format: keyof typeof aggregatedContentTypes,
): ApiResponse {
  const contentType = aggregatedContentTypes[format]
  if (format === 'json') return conditional(exchange, document, contentType)
  let body = inProtobuf.get(document)
  if (body === undefined) {
    const value = parseJsonText(document.body.toString()) as JsonObject
    body = encodeProtobuf(value)
    if (body === undefined) throw new Error('a discovery document has no protobuf form')
    inProtobuf.set(document, body)
  }
  return conditional(exchange, { body, etag: document.etag }, contentType)
}

/** The document with its ETag; 304 if the client has it. */
export function conditional(exchange: Exchange, { body, etag }: DiscoveryDocument, contentType: string): ApiResponse {
  const headers = { 'content-type': contentType, etag, vary: 'Accept', 'cache-control': 'public' }
  if (matchesEtag(exchange.header('if-none-match'), etag)) return notModified(headers)
  return { kind: 'bytes', status: 200, headers, body }
}
