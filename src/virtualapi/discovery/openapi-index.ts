// /openapi/v3: the index of the OpenAPI v3 documents with the hash of each.
import { Buffer } from 'node:buffer'
import { gzipSync } from 'node:zlib'
import { encodeJson, groupVersionPath, type GroupVersion } from '../../apimachinery/meta/index.ts'
import { contentHash } from './discovery-document.ts'

/** One document, for one group version. */
export interface OpenApiDocument {
  /** The value of `?hash=` and, quoted, of the ETag. */
  readonly hash: string
  /** The bytes for clients that accept gzip. */
  gzip(): Buffer
  json(): Buffer
}

/** The key of a group version in the index and in paths below `/openapi/v3/`: `apis/apps/v1`, `api/v1`. */
export function openApiKey(gv: GroupVersion): string {
  return groupVersionPath(gv).slice(1)
}

/** The document of `/openapi/v3`. `basePath`: prefix of the logical cluster's paths, since clients use the URLs unchanged. */
export function openApiIndex(documents: ReadonlyMap<string, OpenApiDocument>, basePath = ''): unknown {
  const entries = [...documents].sort(([a], [b]) => (a < b ? -1 : 1))
  return {
    paths: Object.fromEntries(
      entries.map(([key, { hash }]) => [key, { serverRelativeURL: `${basePath}/openapi/v3/${key}?hash=${hash}` }]),
    ),
  }
}

/** Encodes a generated document. */
export function encodeOpenApiDocument(document: unknown): OpenApiDocument {
  const body = Buffer.from(encodeJson(document))
  let zipped: Buffer | undefined
  return { hash: contentHash(body), json: () => body, gzip: () => (zipped ??= gzipSync(body)) }
}
