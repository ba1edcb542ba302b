// /openapi/v3: which documents there are, each with a hash that changes when it does.
import { Buffer } from 'node:buffer'
import { gzipSync } from 'node:zlib'
import { encodeJson, groupVersionPath, type GroupVersion } from '../../apimachinery/meta/index.ts'
import { contentHash } from './discovery-document.ts'

/** One document, for one group version. */
export interface OpenApiDocument {
  /** What `?hash=` and, in quotes, the ETag say. */
  readonly hash: string
  /** The bytes for clients that take gzip. */
  gzip(): Buffer
  json(): Buffer
}

/** `apis/apps/v1`, `api/v1`: how the index and the path below `/openapi/v3/` name a group version. */
export function openApiKey(gv: GroupVersion): string {
  return groupVersionPath(gv).slice(1)
}

/** The document of `/openapi/v3`. `basePath` is what comes before the logical cluster's own paths: the URLs are used as they are. */
export function openApiIndex(documents: ReadonlyMap<string, OpenApiDocument>, basePath = ''): unknown {
  const entries = [...documents].sort(([a], [b]) => (a < b ? -1 : 1))
  return {
    paths: Object.fromEntries(
      entries.map(([key, { hash }]) => [key, { serverRelativeURL: `${basePath}/openapi/v3/${key}?hash=${hash}` }]),
    ),
  }
}

/** A document of ours as bytes. */
export function encodeOpenApiDocument(document: unknown): OpenApiDocument {
  const body = Buffer.from(encodeJson(document))
  let zipped: Buffer | undefined
  return { hash: contentHash(body), json: () => body, gzip: () => (zipped ??= gzipSync(body)) }
}
