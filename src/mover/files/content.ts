// The content of a file or device: its holes, its digest, the hashes of its blocks.
import { createHash, hash } from 'node:crypto'
import type { HashPool } from './hash-pool.ts'
import { blockBytes, hashBytes } from './hash-jobs.ts'
import { isSystemError, readAt, seekData, seekHole, seekTo } from './libc.ts'

/** Bytes that are hashed by one job. */
export const groupBytes = 32 * blockBytes
/** Jobs of one file that run at the same time. */
const jobsAhead = 3

/** Where a file has data, asked of the file system as it is needed. */
export class DataMap {
  readonly #fd: number
  readonly #size: number
  #from = 0
  #to = 0
  #isSupported = true

  constructor(fd: number, size: number) {
    this.#fd = fd
    this.#size = size
  }

  /** The first offset at or after this one that may have data; the size if there is none. */
  nextData(offset: number): number {
    if (!this.#isSupported || offset >= this.#size) return Math.min(offset, this.#size)
    if (offset >= this.#from && offset < this.#to) return offset
    try {
      this.#from = seekTo(this.#fd, offset, seekData) ?? this.#size
      this.#to = this.#from >= this.#size ? this.#size : (seekTo(this.#fd, this.#from, seekHole) ?? this.#size)
    } catch (error) {
      // Devices and some file systems know no holes.
      if (!isSystemError(error, 'EINVAL', 'ENOTSUP', 'ESPIPE')) throw error
      this.#isSupported = false
      return offset
    }
    return Math.min(this.#from, this.#size)
  }
}

/** A part of a file in order: its hashes, or a run of blocks of zeros that was not read. */
export type BlockGroup =
  | { readonly firstBlock: number; readonly bytes: number; readonly hashes: Buffer }
  | { readonly firstBlock: number; readonly zeroBlocks: number; readonly bytes: number }

/** All blocks of a file in order, with some jobs ahead. Ends early if the file has become shorter. */
export async function* blockGroups(pool: HashPool, fd: number, size: number): AsyncGenerator<BlockGroup, void> {
  const map = new DataMap(fd, size)
  const ahead: Promise<BlockGroup>[] = []
  let next = 0
  const plan = (): Promise<BlockGroup> => {
    const from = next
    const data = Math.min(size, Math.floor(map.nextData(from) / groupBytes) * groupBytes)
    if (data > from || map.nextData(from) >= size) {
      next = map.nextData(from) >= size ? size : data
      const bytes = next - from
      return Promise.resolve({ firstBlock: from / blockBytes, zeroBlocks: Math.ceil(bytes / blockBytes), bytes })
    }
    next = Math.min(size, from + groupBytes)
    return pool.hash(fd, from, next - from).then((group) => ({ firstBlock: from / blockBytes, ...group }))
  }
  try {
    while (next < size || ahead.length > 0) {
      while (next < size && ahead.length < jobsAhead) {
        const job = plan()
        job.catch(() => undefined)
        ahead.push(job)
      }
      const from = ahead.length
      const group = await (ahead.shift() as Promise<BlockGroup>)
      yield group
      const isShort = 'hashes' in group && group.bytes < Math.min(groupBytes, size - group.firstBlock * blockBytes)
      if (isShort && from > 0) return
    }
  } finally {
    // The file stays open until no thread reads it.
    await Promise.allSettled(ahead)
  }
}

const noHash = Buffer.alloc(hashBytes)

export function isZeroHash(hashes: Buffer, at: number): boolean {
  return hashes.compare(noHash, 0, hashBytes, at, at + hashBytes) === 0
}

/**
 * SHA-256 of a small content; of a larger one, SHA-256 over its size and over place and hash of each block that has
 * other bytes than zeros, so that holes need not be read. Undefined if the file has become shorter.
 */
export async function contentDigest(
  pool: HashPool,
  fd: number,
  size: number,
  onBytes: (bytes: number) => void,
): Promise<Buffer | undefined> {
  if (size <= blockBytes) {
    onBytes(size)
    return smallDigest(fd, size)
  }
  const digest = createHash('sha256')
  const place = Buffer.alloc(8)
  place.writeBigUInt64LE(BigInt(size))
  digest.update(place)
  let done = 0
  for await (const group of blockGroups(pool, fd, size)) {
    done += group.bytes
    onBytes(group.bytes)
    if (!('hashes' in group)) continue
    for (let at = 0; at < group.hashes.length; at += hashBytes) {
      if (isZeroHash(group.hashes, at)) continue
      place.writeBigUInt64LE(BigInt(group.firstBlock + at / hashBytes))
      digest.update(place).update(group.hashes.subarray(at, at + hashBytes))
    }
  }
  return done === size ? digest.digest() : undefined
}

const smallBuffer = Buffer.alloc(blockBytes)

/** The whole content of a small file, valid until the next call; undefined if the file is shorter. */
export function readSmall(fd: number, size: number): Buffer | undefined {
  const content = smallBuffer.subarray(0, size)
  return readAt(fd, content, 0) === size ? content : undefined
}

/** SHA-256 of a small content; undefined if the file is shorter. */
export function smallDigest(fd: number, size: number): Buffer | undefined {
  const content = readSmall(fd, size)
  return content && hash('sha256', content, 'buffer')
}

export { blockBytes, hashBytes }
