// /openapi/v3: the index of the OpenAPI v3 documents with the hash of each.
import { Buffer } from 'node:buffer'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { encodeJson, groupVersionPath, type GroupVersion } from '#apimachinery/meta/index.ts'
import { contentHash } from './discovery-document.ts'

const compress = promisify<Buffer, Buffer>(gzip)

/** One document, for one group version. */
export interface OpenApiDocument {
  /** The value of `?hash=` and, quoted, of the ETag. */
  readonly hash: string
  /** The bytes for clients that accept gzip. */
  gzip(): Buffer | Promise<Buffer>
  json(): Buffer
  /** Makes the document unless it exists already; `turn` lets other work run. Call it before `json` and `gzip`. */
  prepare?(turn: () => Promise<void>): Promise<void>
}

/** The key of a group version in the index and in paths below `/openapi/v3/`: `apis/apps/v1`, `api/v1`. */
export function openApiKey(gv: GroupVersion): string {
  return groupVersionPath(gv).slice(1)
}

/**
 * The document of `/openapi/v3`. `basePath`: prefix of the logical cluster's paths, since clients use the URLs
 * unchanged.
 */
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
  return { hash: contentHash(body), ...encodings(body) }
}

/**
 * The encodings of a document with these bytes. They are compressed on another thread, when a client first needs that.
 */
export function encodings(body: Buffer): Pick<OpenApiDocument, 'gzip' | 'json'> {
  let zipped: Promise<Buffer> | undefined
  return { json: () => body, gzip: () => (zipped ??= compress(body)) }
}
