// Reads the first line of a stream and leaves the bytes after it to the next reader.
import type { Duplex } from 'node:stream'

/**
 * Resolves with the line without its end. Rejects if the line has more than `maxBytes`, does not come within
 * `timeoutMs`, or if the stream ends or fails before.
 */
export function readLine(
  stream: Duplex,
  { maxBytes, timeoutMs }: { readonly maxBytes: number; readonly timeoutMs: number },
): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let length = 0
    const settle = (): void => {
      clearTimeout(timer)
      stream.off('readable', onReadable).off('end', onEnd).off('close', onEnd).off('error', fail)
    }
    const fail = (error: Error): void => {
      settle()
      reject(error)
    }
    const onEnd = (): void => fail(new Error('the connection ended before a line'))
    const onReadable = (): void => {
      for (let chunk = read(stream); chunk !== undefined; chunk = read(stream)) {
        const end = chunk.indexOf(0x0a)
        const lineBytes = length + (end < 0 ? chunk.length : end + 1)
        if (lineBytes > maxBytes) {
          fail(new Error('a line is too long'))
          return
        }
        if (end < 0) {
          chunks.push(chunk)
          length += chunk.length
          continue
        }
        settle()
        if (end + 1 < chunk.length) stream.unshift(chunk.subarray(end + 1))
        resolve(Buffer.concat([...chunks, chunk.subarray(0, end)]).toString())
        return
      }
    }
    const timer = setTimeout(() => fail(new Error('no line came in time')), timeoutMs)
    stream.on('readable', onReadable).on('end', onEnd).on('close', onEnd).on('error', fail)
  })
}

function read(stream: Duplex): Buffer | undefined {
  return (stream.read() as Buffer | null) ?? undefined
}
