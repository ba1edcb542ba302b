// The OpenAPI v2 document of the built-in groups: Kubernetes' own document if `make build` has put it into dist,
// otherwise a document that is generated from our tables.
import { parseJsonText } from '#apimachinery/json/index.ts'
import type { Buffer } from 'node:buffer'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { builtInResources } from '#virtualapi/kinds/resources/builtin-resources.ts'
import { openApiFromTables } from '#virtualapi/discovery/built-in-openapi.ts'
import { contentHash } from '#virtualapi/discovery/discovery-document.ts'
import { openApiKey } from '#virtualapi/discovery/openapi-index.ts'
import { kubernetesVersion } from '#virtualapi/discovery/version-info.ts'
import { swaggerFromV3 } from './from-v3.ts'
import { encodeSwagger, type SwaggerParts } from './swagger.ts'

/** The encoding of a document. */
export type OpenApiV2Format = 'json' | 'protobuf'

/** The index that `make build` writes beside the two files. */
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

/** The document; only its gzipped form is kept in memory or on disk. */
export function builtInSwagger(): BuiltInSwagger {
  return (known ??= readBuilt() ?? swaggerFromTables())
}

function readBuilt(): BuiltInSwagger | undefined {
  // Relative to dist/src/virtualapi/discovery/openapi-v2, then to src/virtualapi/discovery/openapi-v2 of a checkout.
  for (const place of ['../../../../openapi/v2/', '../../../../dist/openapi/v2/']) {
    const dir = fileURLToPath(new URL(place, import.meta.url))
    if (!existsSync(`${dir}index.json`)) continue
    const index = parseJsonText(readFileSync(`${dir}index.json`, 'utf8')) as unknown as BuiltSwaggerIndex
    if (index.version === kubernetesVersion)
      return { ...index, gzip: (format) => readFileSync(dir + swaggerFiles[format]) }
  }
  return undefined
}

/** Generates paths and definitions of all built-in group versions, without descriptions. */
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

/** The members of the document other than paths and definitions. */
export const swaggerHead: JsonObject = {
  swagger: '2.0',
  info: { title: 'Kubernetes', version: '1.34' },
  securityDefinitions: {
    BearerToken: { description: 'Bearer Token authentication', type: 'apiKey', name: 'authorization', in: 'header' },
  },
  security: [{ BearerToken: [] }],
}
