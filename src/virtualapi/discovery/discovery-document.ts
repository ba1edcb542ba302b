// An encoded discovery document and its ETag.
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { encodeJson } from '#apimachinery/meta/index.ts'

export interface DiscoveryDocument {
  readonly body: Buffer
  /** SHA-512 in hexadecimal, quoted. */
  readonly etag: string
}

/** Encodes a document; equal documents get equal ETags. */
export function discoveryDocument(value: unknown): DiscoveryDocument {
  const body = Buffer.from(`${encodeJson(value)}\n`)
  return { body, etag: `"${contentHash(body)}"` }
}

/** SHA-512 in upper-case hexadecimal, for ETags and `?hash=`. */
export function contentHash(body: Uint8Array | string): string {
  return createHash('sha512').update(body).digest('hex').toUpperCase()
}

/** True if If-None-Match has this ETag, so that the response is 304. */
export function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  return ifNoneMatch.split(',').some((item) => item.trim() === '*' || item.trim().replace(/^W\//, '') === etag)
}
