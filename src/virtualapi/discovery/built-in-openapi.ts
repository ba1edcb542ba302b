// OpenAPI v3 documents of the built-in group versions: Kubernetes' own documents if `make build` has put them into
// dist, otherwise documents that are generated from our tables.
import { parseJsonText } from '#apimachinery/json/index.ts'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import type { Buffer } from 'node:buffer'
import type { GroupVersion, GroupVersionKind, JsonObject } from '#apimachinery/meta/index.ts'
import { builtInResources } from '#virtualapi/kinds/resources/builtin-resources.ts'
import type { ResourceInfo } from '#virtualapi/kinds/resources/resource-info.ts'
import { contentHash } from './discovery-document.ts'
import { builtInDefinitionName, builtInDefinitions } from './openapi-definitions.ts'
import { encodeOpenApiDocument, openApiKey, type OpenApiDocument } from './openapi-index.ts'
import { commonDefinitions, resourcePaths } from './openapi-operations.ts'
import { kubernetesVersion } from './version-info.ts'

interface BuiltIndex {
  version: string
  documents: Record<string, { file: string; hash: string }>
}

let known: ReadonlyMap<string, OpenApiDocument> | undefined

/**
 * A document per built-in group version, by `openApiKey`. Each document is read or generated when its bytes are first
 * needed.
 */
export function builtInOpenApi(): ReadonlyMap<string, OpenApiDocument> {
  known ??= builtDocuments() ?? tableDocuments()
  return known
}

/** Generates the document of one group version from the tables: paths and definitions, without descriptions. */
export function openApiFromTables(gv: GroupVersion): JsonObject {
  const infos = builtInResources().filter(({ group, version }) => group === gv.group && version === gv.version)
  const used = new Set(commonDefinitions)
  const definitionOf = (gvk: GroupVersionKind): string | undefined => {
    const name = builtInDefinitionName(gvk)
    if (name !== undefined) used.add(name)
    return name
  }
  const paths: Record<string, JsonObject> = {}
  for (const info of infos) {
    definitionOf(info)
    Object.assign(paths, resourcePaths(info, { definitionOf }))
  }
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version: '1.34' },
    paths,
    components: { schemas: builtInDefinitions(used) },
  }
}

/**
 * The index of the documents that `make build` wrote; undefined if there are none, or if they are of another Kubernetes
 * version.
 */
function readBuiltIndex(): { dir: string; index: BuiltIndex } | undefined {
  // Relative to dist/src/virtualapi/discovery, then to src/virtualapi/discovery of a checkout.
  for (const place of ['../../../openapi/v3/', '../../../dist/openapi/v3/']) {
    const dir = fileURLToPath(new URL(place, import.meta.url))
    if (!existsSync(`${dir}index.json`)) continue
    const index = parseJsonText(readFileSync(`${dir}index.json`, 'utf8')) as unknown as BuiltIndex
    if (index.version === kubernetesVersion) return { dir, index }
  }
  return undefined
}

function builtDocuments(): Map<string, OpenApiDocument> | undefined {
  const built = readBuiltIndex()
  if (built === undefined) return undefined
  return new Map(
    Object.entries(built.index.documents).map(([key, { file, hash }]) => {
      const gzip = (): Buffer => readFileSync(built.dir + file)
      return [key, { hash, gzip, json: () => gunzipSync(gzip()) }]
    }),
  )
}

function tableDocuments(): Map<string, OpenApiDocument> {
  const gvs = new Map(builtInResources().map((info: ResourceInfo) => [openApiKey(info), info]))
  return new Map([...gvs].map(([key, gv]) => [key, tableDocument(key, gv)]))
}

/**
 * The document of a group version, generated when it is first needed. Its hash is the hash of its inputs, so that the
 * index does not need the document.
 */
function tableDocument(key: string, gv: GroupVersion): OpenApiDocument {
  let encoded: OpenApiDocument | undefined
  const document = (): OpenApiDocument => (encoded ??= encodeOpenApiDocument(openApiFromTables(gv)))
  return {
    hash: contentHash(`${kubernetesVersion} tables 2 ${key}`),
    json: () => document().json(),
    gzip: () => document().gzip(),
  }
}
