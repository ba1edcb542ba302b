// gzip of large answers, as kube-apiserver does it: objects and lists of more than 128 KiB, at the fastest level.
// Compression runs on the threads of libuv's pool.
import { pipeline, Readable } from 'node:stream'
import { promisify } from 'node:util'
import { createGzip, gzip } from 'node:zlib'
import type { BytesResponse, SentChunks, StreamResponse } from '#virtualapi/request/exchange.ts'

const minBytes = 128 * 1024
const level = 1
const gzipped = promisify(gzip)

/** Whether an answer of about this size is compressed for a client with this Accept-Encoding header. */
export function isCompressed(
  { status, headers }: Pick<BytesResponse, 'status' | 'headers'>,
  bytes: number,
  acceptEncoding: string | undefined,
): boolean {
  if (bytes <= minBytes || status >= 300 || headers['content-encoding'] !== undefined) return false
  if (headers['content-type']?.startsWith('application/') !== true || acceptEncoding === undefined) return false
  // As in kube-apiserver, a coding with a quality value does not count.
  return acceptEncoding.split(',').some((coding) => coding.trim() === 'gzip')
}

/** The given response, compressed. */
export async function compressBytes(response: BytesResponse): Promise<BytesResponse> {
  return { ...response, headers: compressedHeaders(response.headers), body: await gzipped(response.body, { level }) }
}

/** The given response as a compressed stream. Its chunks are encoded in turns of their logical cluster. */
export function compressChunks({
  status,
  headers,
  chunks: pieces,
  turn,
  maxStallMs,
  maxMs,
}: SentChunks): StreamResponse {
  const chunks = compressedChunks(pieces, turn)
  return { kind: 'stream', status, headers: compressedHeaders(headers), chunks, maxStallMs, maxMs }
}

function compressedHeaders(headers: BytesResponse['headers']): Record<string, string> {
  const { 'content-length': _, ...others } = headers
  return { ...others, 'content-encoding': 'gzip', vary: 'Accept-Encoding' }
}

async function* compressedChunks(
  pieces: SentChunks['chunks'],
  turn: SentChunks['turn'],
): AsyncGenerator<Uint8Array, void, undefined> {
  // A failure of either end destroys the other, and is thrown to the reader.
  const compressor = pipeline(Readable.from(inTurns(pieces, turn)), createGzip({ level }), () => undefined)
  for await (const chunk of compressor) yield chunk as Uint8Array
}

async function* inTurns(pieces: SentChunks['chunks'], turn: SentChunks['turn']): AsyncGenerator<Uint8Array> {
  for (const piece of pieces) {
    yield piece
    await turn()
  }
}
