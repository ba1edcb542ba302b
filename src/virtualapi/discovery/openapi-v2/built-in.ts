// The OpenAPI v2 document of the built-in groups: Kubernetes' own where the build put it, else made of our tables.
import type { Buffer } from 'node:buffer'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gunzipSync, gzipSync } from 'node:zlib'
import type { JsonObject } from '../../../apimachinery/meta/index.ts'
import { builtInResources } from '../../resources/builtin-resources.ts'
import { openApiFromTables } from '../built-in-openapi.ts'
import { contentHash } from '../discovery-document.ts'
import { openApiKey } from '../openapi-index.ts'
import { kubernetesVersion } from '../version-info.ts'
import { swaggerFromV3 } from './from-v3.ts'
import { encodeSwagger, type SwaggerParts } from './swagger.ts'

/** How a document is written. */
export type OpenApiV2Format = 'json' | 'protobuf'

/** What `make build` leaves beside the two files. */
export interface BuiltSwaggerIndex {
  readonly version: string
  readonly hash: string
  readonly pathsEnd: number
  readonly definitions: readonly string[]
}

export interface BuiltInSwagger extends BuiltSwaggerIndex {
  gzip(format: OpenApiV2Format): Buffer
}

export const swaggerFiles: Readonly<Record<OpenApiV2Format, string>> = {
  json: 'openapi.json.gz',
  protobuf: 'openapi.pb.gz',
}

let known: BuiltInSwagger | undefined

/** The document; only its gzip form stays in memory or on disk. */
export function builtInSwagger(): BuiltInSwagger {
  return (known ??= readBuilt() ?? swaggerFromTables())
}

/** The whole body of the document in one format. */
export function unzipped(swagger: BuiltInSwagger, format: OpenApiV2Format): Buffer {
  return gunzipSync(swagger.gzip(format))
}

function readBuilt(): BuiltInSwagger | undefined {
  // Seen from dist/src/virtualapi/discovery/openapi-v2, then from a checkout's src/virtualapi/discovery/openapi-v2.
  for (const place of ['../../../../openapi/v2/', '../../../../dist/openapi/v2/']) {
    const dir = fileURLToPath(new URL(place, import.meta.url))
    if (!existsSync(`${dir}index.json`)) continue
    const index = JSON.parse(readFileSync(`${dir}index.json`, 'utf8')) as BuiltSwaggerIndex
    if (index.version === kubernetesVersion)
      return { ...index, gzip: (format) => readFileSync(dir + swaggerFiles[format]) }
  }
  return undefined
}

/** Paths and definitions of all built-in group versions, no texts. */
export function swaggerFromTables(): BuiltInSwagger {
  const parts: SwaggerParts = { paths: {}, definitions: {} }
  for (const gv of new Map(builtInResources().map((info) => [openApiKey(info), info])).values()) {
    const { paths, definitions } = swaggerFromV3(openApiFromTables(gv), ['*/*'])
    Object.assign(parts.paths, paths)
    Object.assign(parts.definitions, definitions)
  }
  const { json, protobuf, pathsEnd } = encodeSwagger(swaggerHead, parts)
  const zipped = { json: gzipSync(json), protobuf: gzipSync(protobuf) }
  return {
    version: kubernetesVersion,
    hash: contentHash(json),
    pathsEnd,
    definitions: Object.keys(parts.definitions),
    gzip: (format) => zipped[format],
  }
}

/** What the document says beside paths and definitions. */
export const swaggerHead: JsonObject = {
  swagger: '2.0',
  info: { title: 'Kubernetes', version: '1.34' },
  securityDefinitions: {
    BearerToken: { description: 'Bearer Token authentication', type: 'apiKey', name: 'authorization', in: 'header' },
  },
  security: [{ BearerToken: [] }],
}
