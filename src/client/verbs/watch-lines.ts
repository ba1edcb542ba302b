// A watch is a stream of JSON documents, one per line. Only \n ends a line; Node's readline would also end it at U+2028.
import { requestEntityTooLarge } from '#apimachinery/status/index.ts'

const newline = 0x0a

/** The lines of a byte stream, without \n. Drops an unfinished last line. Rejects if a line is longer than `maxBytes`. */
export async function* linesOf(
  body: AsyncIterable<Uint8Array>,
  { maxBytes }: { maxBytes: number },
): AsyncGenerator<string> {
  let parts: Uint8Array[] = []
  let held = 0
  for await (const chunk of body) {
    let start = 0
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      const tail = chunk.subarray(start, end)
      start = end + 1
      if (held + tail.length > maxBytes) throw tooLong(maxBytes)
      const line = parts.length === 0 ? decode(tail) : decode(Buffer.concat([...parts, tail]))
      parts = []
      held = 0
      if (line !== '') yield line
    }
    if (start < chunk.length) {
      parts.push(chunk.subarray(start))
      held += chunk.length - start
      if (held > maxBytes) throw tooLong(maxBytes)
    }
  }
}

function decode(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}

function tooLong(maxBytes: number): Error {
  return requestEntityTooLarge(`an event of the watch is larger than ${maxBytes} bytes`)
}
