// Reads the whole body of a request, by events: for a small request, an async iterator costs more than all other work
// on the body.
import { badRequest, requestEntityTooLarge } from '#apimachinery/status/index.ts'
import { maxBodyBytes } from '#virtualapi/codec/read-object.ts'
import { headerOf, type BodyLimit } from '#virtualapi/request/exchange.ts'
import type { RawRequest } from './raw-request.ts'

/**
 * Reads the whole body. Rejects with 413 above `maxBytes`, and with 400 if the client disconnects before its end.
 */
export async function readBody(
  { rawHeaders, body }: Pick<RawRequest, 'rawHeaders' | 'body'>,
  { maxBytes = maxBodyBytes }: BodyLimit = {},
): Promise<Uint8Array> {
  const announced = Number(headerOf(rawHeaders, 'content-length') ?? 0)
  if (announced > maxBytes) throw tooLarge(maxBytes)
  const read = await chunksOf(body, maxBytes)
  if (read.length < announced) throw brokenOff()
  return read
}

function chunksOf(body: RawRequest['body'], maxBytes: number): Promise<Uint8Array> {
  const chunks: Buffer[] = []
  let length = 0
  return new Promise((resolve, reject) => {
    const whole = (): void => resolve(chunks.length === 1 ? (chunks[0] ?? Buffer.alloc(0)) : Buffer.concat(chunks))
    if (body.readableEnded) {
      whole()
      return
    }
    const read = (chunk: Buffer): void => {
      length += chunk.length
      if (length <= maxBytes) {
        chunks.push(chunk)
        return
      }
      chunks.length = 0
      body.off('data', read)
      body.pause()
      // In HTTP/2, the body and the response share a stream, which must stay open for the response 413.
      if (!('respond' in body)) body.destroy()
      reject(tooLarge(maxBytes))
    }
    body.on('end', whole)
    // After the end, 'close' is ignored and no error is made for it, because the stack of an error is costly.
    body.on('error', (cause) => reject(brokenOff(cause)))
    body.on('close', () => {
      if (!body.readableEnded) reject(brokenOff())
    })
    if (body.destroyed) reject(brokenOff())
    else body.on('data', read)
  })
}

function brokenOff(cause?: unknown): Error {
  return badRequest('the client broke off before the end of the body', cause)
}

function tooLarge(maxBytes: number): Error {
  return requestEntityTooLarge(`Request entity too large: limit is ${maxBytes}`)
}
