// Checks that bytes are a whole snapshot: all of them, or on their way to somewhere else.
import { readSnapshot, SnapshotError, type ReadLine, type SnapshotManifest } from './format.ts'

/** Reads a snapshot to its end, which checks that it is whole. Rejects with SnapshotError if it is not. */
export async function readWhole(
  source: AsyncIterable<Uint8Array>,
  each?: (line: ReadLine) => void,
): Promise<SnapshotManifest> {
  let manifest: SnapshotManifest | undefined
  for await (const item of readSnapshot(source)) {
    if ('manifest' in item) manifest = item.manifest
    else each?.(item)
  }
  if (manifest === undefined) throw new SnapshotError('it is empty')
  return manifest
}

/**
 * Passes the bytes of a snapshot on, once. They end with a SnapshotError if they were not a whole one, so that a
 * receiver that keeps only what ended well keeps only whole ones. Memory does not grow with the bytes.
 */
export class PassingSnapshot implements AsyncIterable<Uint8Array> {
  readonly #source: AsyncIterable<Uint8Array>
  #manifest: SnapshotManifest | undefined

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source
  }

  /** Of the bytes that have passed. Throws SnapshotError before their end. */
  get manifest(): SnapshotManifest {
    if (this.#manifest === undefined) throw new SnapshotError('it has not been read to its end')
    return this.#manifest
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
    const writer = writable.getWriter()
    const reading = readWhole(readable)
    reading.catch(() => undefined)
    // A reader that has given up says why; one that has ended needs no more bytes.
    const readerEnded = async (): Promise<void> => {
      await reading
    }
    try {
      for await (const chunk of this.#source) {
        await writer.write(chunk).catch(readerEnded)
        yield chunk
      }
      await writer.close().catch(readerEnded)
      this.#manifest = await reading
    } finally {
      await writer.abort().catch(() => undefined)
    }
  }
}
