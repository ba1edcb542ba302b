// Node's Buffer for the browser: only what src/client needs to read answers, which are UTF-8.

type Source = string | ArrayBufferLike | ArrayLike<number> | Iterable<number>

export class Buffer extends Uint8Array {
  static override from(source: Source, offset?: unknown, length?: unknown): Buffer {
    if (typeof source === 'string') return new Buffer(new TextEncoder().encode(source))
    // The memory is shared, as Node does it, and not copied.
    if (source instanceof ArrayBuffer)
      return new Buffer(source, Number(offset ?? 0), length === undefined ? undefined : Number(length))
    return new Buffer(source as ArrayLike<number>)
  }

  static concat(parts: readonly Uint8Array[], size = parts.reduce((sum, part) => sum + part.length, 0)): Buffer {
    const all = new Buffer(size)
    let at = 0
    for (const part of parts) {
      all.set(part, at)
      at += part.length
    }
    return all
  }

  static byteLength(text: string): number {
    return new TextEncoder().encode(text).length
  }

  override toString(_encoding?: string, from = 0, to = this.length): string {
    return new TextDecoder().decode(this.subarray(from, to))
  }
}
