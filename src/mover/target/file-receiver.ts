// The files that the target has asked for: writes their content in place as it arrives, or compares it.
import { ftruncateSync } from 'node:fs'
import { asError, MoverError } from '#mover/contract/index.ts'
import { blockGroups, contentDigest, hashBytes } from '#mover/files/content.ts'
import type { HashPool } from '#mover/files/hash-pool.ts'
import { closeFd, dropCache, isSystemError, punchHoleAt, writeAt, type Time } from '#mover/files/libc.ts'
import { ByteReader, ByteWriter, violated } from '#mover/wire/bytes.ts'
import { digestBytes, readTime, smallFileBytes } from '#mover/wire/entries.ts'
import {
  endStates,
  frameTypes,
  hashMarks,
  wantKinds,
  type EndState,
  type Frame,
  type FrameStream,
  type WantKind,
} from '#mover/wire/frames.ts'
import type { RoundCounts } from './round-counts.ts'

export interface Received {
  readonly state: EndState
  /** Size and time of the content, as the source had them when it began to send. */
  readonly size: number
  readonly modified: Time
}

export interface WantedFile {
  /** Number of the entry within the pass. */
  readonly number: number
  readonly path: Buffer
  /** Open for reading and writing; `done` closes it. */
  readonly fd: number
  /** Size of what the target has: above a bound, only changed blocks travel. */
  readonly ownSize: number
  /** A device: its size does not change. */
  readonly isDevice?: boolean
  /** Called once when the content is complete, or does not come. */
  readonly done: (received: Received) => void
}

export interface ComparedFile {
  /** Number of the entry within the pass. */
  readonly number: number
  readonly path: Buffer
  /** Open for reading; it is closed after the comparison, unless it is that of a device. */
  readonly fd: number
  readonly isDevice?: boolean
  /** Both sides have this size. */
  readonly size: number
  /** Called with the number of further bytes that were read. */
  readonly onBytes?: (bytes: number) => void
  /** Called once, with the digest of both sides; with undefined if they differ. Not called if the round fails. */
  readonly done: (digest: Buffer | undefined) => Promise<void> | void
}

interface Receiving extends WantedFile {
  readonly isPartial: boolean
  size: number
  modified: Time
  hasBegun: boolean
  /** Bytes of this file that `counts` has. */
  counted: number
  /** Own bytes that the source has compared. */
  compared: number
  comparedMore: PromiseWithResolvers<undefined> | undefined
  hashing: Promise<void>
}

/** Files above this size that the target has a version of are compared by blocks. */
const partialBytes = 1 << 20
/** Files that were asked for. */
const maxWanted = 256
/** Bytes of a file whose hashes were sent and not compared yet. */
const hashedAheadBytes = 128 << 20
/** Files whose hashes are sent at the same time. */
const maxHashing = 2
/** Files that are compared at the same time by digests that the source has to make. */
const maxComparing = 4
const zeroBytes = Buffer.alloc(1 << 17)

export interface FileReceiverOptions {
  readonly frames: FrameStream
  readonly pool: HashPool
  readonly counts: RoundCounts
}

export class FileReceiver {
  readonly #options: FileReceiverOptions
  readonly #files = new Map<number, Receiving>()
  readonly #comparing = new Set<Promise<void>>()
  /** Digests that the source was asked for. */
  readonly #asked = new Map<number, PromiseWithResolvers<Buffer | undefined>>()
  #hashing = 0
  #changed = Promise.withResolvers<undefined>()
  #failure: Error | undefined

  constructor(options: FileReceiverOptions) {
    this.#options = options
    this.#changed.promise.catch(() => undefined)
  }

  /** Asks for a file. Waits while too many are on their way. */
  async want(file: WantedFile): Promise<void> {
    await this.until(() => this.#files.size < maxWanted)
    const isPartial = file.isDevice === true || file.ownSize > partialBytes
    if (isPartial) await this.until(() => this.#hashing < maxHashing)
    else if (file.ownSize > 0) ftruncateSync(file.fd, 0)
    const receiving: Receiving = {
      ...file,
      isPartial,
      size: 0,
      modified: { seconds: 0, nanoseconds: 0 },
      hasBegun: false,
      counted: 0,
      compared: 0,
      comparedMore: undefined,
      hashing: Promise.resolve(),
    }
    this.#files.set(file.number, receiving)
    await this.#ask(file, isPartial ? 'blocks' : 'content')
    if (!isPartial) return
    this.#hashing++
    receiving.hashing = this.#sendHashes(receiving).finally(() => {
      this.#hashing--
      this.#tell()
    })
    receiving.hashing.catch((error: unknown) => this.fail(error))
  }

  async #ask({ number, path }: { readonly number: number; readonly path: Buffer }, kind: WantKind): Promise<void> {
    const body = new ByteWriter(64).u32(number).u8(wantKinds.indexOf(kind)).raw(path)
    await this.#options.frames.send(frameTypes.want, body.take())
  }

  /**
   * Compares a file with the source's, while the caller goes on. Waits only while too many are compared. Closes the file,
   * whatever happens.
   */
  async compare(file: ComparedFile): Promise<void> {
    try {
      await this.until(() => this.#comparing.size < maxComparing)
    } catch (error) {
      if (file.isDevice !== true) closeFd(file.fd)
      throw error
    }
    const comparing: Promise<void> = this.#compareDigests(file)
      .catch((error: unknown) => this.fail(error))
      .finally(() => {
        this.#comparing.delete(comparing)
        this.#tell()
      })
    this.#comparing.add(comparing)
  }

  async #compareDigests(file: ComparedFile): Promise<void> {
    const asked = Promise.withResolvers<Buffer | undefined>()
    asked.promise.catch(() => undefined)
    this.#asked.set(file.number, asked)
    try {
      // Both sides read at the same time.
      const [own, theirs] = await Promise.all([
        this.#ownDigest(file),
        this.#ask(file, 'digest').then(() => asked.promise),
      ])
      if (this.#failure !== undefined) throw this.#failure
      await file.done(theirs !== undefined && own?.equals(theirs) === true ? theirs : undefined)
    } finally {
      this.#asked.delete(file.number)
    }
  }

  async #ownDigest({ fd, size, isDevice, onBytes = () => undefined }: ComparedFile): Promise<Buffer | undefined> {
    try {
      dropCache(fd)
      return await contentDigest(this.#options.pool, fd, size, onBytes)
    } finally {
      if (isDevice !== true) closeFd(fd)
    }
  }

  /** Resolves once all files are complete. */
  idle(): Promise<void> {
    return this.until(() => this.#files.size === 0 && this.#comparing.size === 0)
  }

  /** Waits for a state of this receiver. Rejects if the round fails. */
  async until(isTrue: () => boolean): Promise<void> {
    while (!isTrue()) {
      if (this.#failure !== undefined) throw this.#failure
      await this.#changed.promise
    }
  }

  fail(error: unknown): void {
    this.#failure ??= asError(error)
    this.#changed.reject(error)
    for (const { comparedMore } of this.#files.values()) comparedMore?.reject(error)
    for (const { reject } of this.#asked.values()) reject(error)
  }

  /** Resolves when no thread reads a file any more. */
  async settled(): Promise<void> {
    await Promise.allSettled([...this.#comparing, ...[...this.#files.values()].map(({ hashing }) => hashing)])
  }

  /** Files whose descriptors are open. */
  get open(): readonly WantedFile[] {
    return [...this.#files.values()]
  }

  hear({ type, body }: Frame): void {
    const from = new ByteReader(body)
    const number = from.u32()
    if (type === frameTypes.digest) {
      this.#digest(number, from)
      return
    }
    const file = this.#files.get(number)
    if (file === undefined) throw violated('content that was not asked for')
    if (type === frameTypes.begin) this.#begin(file, from)
    else if (type === frameTypes.data) this.#write(file, from.size(), from.rest())
    else if (type === frameTypes.zeros) this.#clear(file, from.size(), from.size())
    else if (type === frameTypes.compared) this.#compare(file, from.size())
    else if (type === frameTypes.whole) this.#whole(file, from)
    else this.#end(file, readState(from))
  }

  #digest(number: number, from: ByteReader): void {
    const asked = this.#asked.get(number)
    if (asked === undefined) throw violated('a digest that was not asked for')
    const state = readState(from)
    // One that the source could not make is as one that differs.
    asked.resolve(state === 'complete' ? Buffer.from(from.raw(digestBytes)) : undefined)
  }

  #begin(file: Receiving, from: ByteReader): void {
    if (file.hasBegun) throw violated('a file that begins twice')
    file.hasBegun = true
    file.size = from.size()
    file.modified = readTime(from)
    if (file.isDevice !== true) {
      ftruncateSync(file.fd, file.size)
      return
    }
    if (file.size > file.ownSize)
      throw new MoverError(
        'TargetFull',
        `the device of the target has ${file.ownSize} bytes, that of the source ${file.size}`,
      )
  }

  #write(file: Receiving, offset: number, bytes: Buffer): void {
    this.#check(file, offset, bytes.length)
    writeAt(file.fd, bytes, offset)
    this.#options.counts.bytesChanged += bytes.length
    this.#count(file, offset + bytes.length)
  }

  #clear(file: Receiving, offset: number, length: number): void {
    this.#check(file, offset, length)
    try {
      punchHoleAt(file.fd, offset, length)
    } catch (error) {
      if (!isSystemError(error, 'ENOTSUP', 'ENODEV', 'EINVAL', 'ENOSYS', 'EPERM')) throw error
      for (let at = 0; at < length; at += zeroBytes.length)
        writeAt(file.fd, zeroBytes.subarray(0, Math.min(zeroBytes.length, length - at)), offset + at)
    }
    this.#options.counts.bytesChanged += length
  }

  #check(file: Receiving, offset: number, length: number): void {
    if (!file.hasBegun || offset + length > file.size) throw violated('content beyond the end of its file')
  }

  #compare(file: Receiving, bytes: number): void {
    if (!file.hasBegun || bytes > file.size) throw violated('a comparison beyond the end of its file')
    file.compared = bytes
    file.comparedMore?.resolve(undefined)
    file.comparedMore = undefined
    this.#count(file, bytes)
  }

  #whole(file: Receiving, from: ByteReader): void {
    const state = readState(from)
    file.modified = readTime(from)
    const content = from.rest()
    if (file.hasBegun || content.length > smallFileBytes) throw violated('a small file that is none')
    file.size = content.length
    if (content.length > 0) writeAt(file.fd, content, 0)
    this.#options.counts.bytesChanged += content.length
    this.#finish(file, state)
  }

  #end(file: Receiving, state: EndState): void {
    if (state === 'complete' && !file.hasBegun) throw violated('a file without content')
    this.#finish(file, state)
  }

  #finish(file: Receiving, state: EndState): void {
    this.#count(file, file.size)
    file.compared = Infinity
    file.comparedMore?.resolve(undefined)
    // The number is free only when no thread reads the file.
    const close = (): void => {
      this.#files.delete(file.number)
      this.#tell()
      file.done({ state, size: file.size, modified: file.modified })
    }
    if (!file.isPartial) {
      close()
      return
    }
    file.hashing.then(close).catch((error: unknown) => this.fail(error))
  }

  #count(file: Receiving, bytes: number): void {
    if (bytes <= file.counted) return
    this.#options.counts.bytes += bytes - file.counted
    file.counted = bytes
  }

  /** Sends the hashes of what the target has, some way ahead of the source. */
  async #sendHashes(file: Receiving): Promise<void> {
    const { frames, pool } = this.#options
    for await (const group of blockGroups(pool, file.fd, file.ownSize)) {
      while (group.firstBlock * (1 << 17) > file.compared + hashedAheadBytes) {
        if (this.#failure !== undefined) throw this.#failure
        file.comparedMore ??= Promise.withResolvers()
        await file.comparedMore.promise
      }
      // The file has ended, or vanished in the source.
      if (file.compared === Infinity) return
      const head = new ByteWriter(16).u32(file.number)
      if ('hashes' in group) {
        if (group.hashes.length >= hashBytes)
          await frames.send(frameTypes.hashes, head.u8(hashMarks.list).take(), group.hashes)
      } else await frames.send(frameTypes.hashes, head.u8(hashMarks.zeros).size(group.zeroBlocks).take())
    }
    await frames.send(frameTypes.hashes, new ByteWriter(8).u32(file.number).u8(hashMarks.end).take())
  }

  #tell(): void {
    const changed = this.#changed
    this.#changed = Promise.withResolvers()
    this.#changed.promise.catch(() => undefined)
    if (this.#failure !== undefined) this.#changed.reject(this.#failure)
    changed.resolve(undefined)
  }
}

function readState(from: ByteReader): EndState {
  const state = endStates[from.u8()]
  if (state === undefined) throw violated('an end of an unknown kind')
  return state
}
