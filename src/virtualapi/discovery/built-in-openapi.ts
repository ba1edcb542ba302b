// OpenAPI v3 documents of the built-in group versions: Kubernetes' own where the build put them, else made of our tables.
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import type { Buffer } from 'node:buffer'
import type { GroupVersion, GroupVersionKind, JsonObject } from '../../apimachinery/meta/index.ts'
import { builtInResources } from '../resources/builtin-resources.ts'
import type { ResourceInfo } from '../resources/resource-info.ts'
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

/** A document per built-in group version, by `openApiKey`. Nothing is read or made before its bytes are asked for. */
export function builtInOpenApi(): ReadonlyMap<string, OpenApiDocument> {
  known ??= builtDocuments() ?? tableDocuments()
  return known
}

/** The document of one group version made of the tables: paths and definitions, no texts. */
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

/** Kubernetes' documents as `make build` leaves them; undefined: not built, or for another version. */
function readBuiltIndex(): { dir: string; index: BuiltIndex } | undefined {
  // Seen from dist/src/virtualapi/discovery, then from a checkout's src/virtualapi/discovery.
  for (const place of ['../../../openapi/v3/', '../../../dist/openapi/v3/']) {
    const dir = fileURLToPath(new URL(place, import.meta.url))
    if (!existsSync(`${dir}index.json`)) continue
    const index = JSON.parse(readFileSync(`${dir}index.json`, 'utf8')) as BuiltIndex
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

/** The hash is of what the document is made of, so that the index costs nothing. */
function tableDocument(key: string, gv: GroupVersion): OpenApiDocument {
  let made: OpenApiDocument | undefined
  const document = (): OpenApiDocument => (made ??= encodeOpenApiDocument(openApiFromTables(gv)))
  return {
    hash: contentHash(`${kubernetesVersion} tables 1 ${key}`),
    json: () => document().json(),
    gzip: () => document().gzip(),
  }
}
