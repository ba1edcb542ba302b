// A discovery document as bytes, with the ETag that says whether it changed.
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { encodeJson } from '../../apimachinery/meta/index.ts'

export interface DiscoveryDocument {
  readonly body: Buffer
  /** Quoted SHA-512 in hex, as a header carries it. */
  readonly etag: string
}

/** Encodes a document; equal documents get equal ETags. */
export function discoveryDocument(value: unknown): DiscoveryDocument {
  const body = Buffer.from(`${encodeJson(value)}\n`)
  return { body, etag: `"${contentHash(body)}"` }
}

/** SHA-512 in upper-case hex: what ETags and `?hash=` carry. */
export function contentHash(body: Uint8Array | string): string {
  return createHash('sha512').update(body).digest('hex').toUpperCase()
}

/** True if the client's If-None-Match names this ETag: the answer is 304 without a body. */
export function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  return ifNoneMatch.split(',').some((item) => item.trim() === '*' || item.trim().replace(/^W\//, '') === etag)
}
