// /openapi/v2: one document for all resources of a logical cluster, as JSON or protobuf. kubectl reads it where OpenAPI
// v3 does not suffice, for example for kind List.
import { notAcceptable } from '#apimachinery/status/index.ts'
import { notModified } from '#virtualapi/codec/responses.ts'
import { matchesEtag } from '#virtualapi/discovery/index.ts'
import {
  openApiV2Body,
  openApiV2Hash,
  type SwaggerSources,
  type OpenApiV2Format,
} from '#virtualapi/discovery/openapi-v2/index.ts'
import type { ApiResponse, Exchange } from '#virtualapi/request/exchange.ts'

const jsonType = 'application/json'
/** The Content-Type that kube-apiserver sends, even to clients that ask for the older name. */
const protobufType = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'
const formats: Readonly<Record<string, OpenApiV2Format>> = {
  [jsonType]: 'json',
  'application/com.github.proto-openapi.spec.v2@v1.0+protobuf': 'protobuf',
  [protobufType]: 'protobuf',
  'application/*': 'json',
  '*/*': 'json',
}

export async function openApiV2(exchange: Exchange, custom: SwaggerSources): Promise<ApiResponse> {
  const format = negotiateFormat(exchange.header('accept'))
  if (format === undefined)
    throw notAcceptable(`only the following media types are accepted: ${Object.keys(formats).slice(0, 3).join(', ')}`)
  const etag = `"${openApiV2Hash(custom)}"`
  const headers = { 'content-type': format === 'json' ? jsonType : protobufType, etag, vary: 'Accept, Accept-Encoding' }
  if (matchesEtag(exchange.header('if-none-match'), etag)) return notModified(headers)
  const gzipped = /\bgzip\b/.test(exchange.header('accept-encoding') ?? '')
  const body = await openApiV2Body(custom, { format, gzipped })
  return { kind: 'bytes', status: 200, headers: gzipped ? { ...headers, 'content-encoding': 'gzip' } : headers, body }
}

/** The format we serve that the client prefers (RFC 9110, section 12.5.1); undefined if it accepts none. */
function negotiateFormat(accept: string | undefined): OpenApiV2Format | undefined {
  if (accept === undefined || accept.trim() === '') return 'json'
  const clauses = accept.split(',').map((clause) => {
    const [type = '', ...parameters] = clause.split(';').map((part) => part.trim())
    const quality = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2)
    return { format: formats[type.toLowerCase()], quality: quality === undefined ? 1 : Number(quality) || 0 }
  })
  clauses.sort((a, b) => b.quality - a.quality)
  return clauses.find(({ format, quality }) => format !== undefined && quality > 0)?.format
}
