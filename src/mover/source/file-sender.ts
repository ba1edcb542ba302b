// Sends the content of one file after the other: whole, or only the blocks that differ from the target's.
import { asError, MoverError } from '#mover/contract/index.ts'
import {
  blockBytes,
  blockGroups,
  contentDigest,
  DataMap,
  hashBytes,
  isZeroHash,
  readSmall,
  type BlockGroup,
} from '#mover/files/content.ts'
import { FolderCache } from '#mover/files/folder-cache.ts'
import type { HashPool } from '#mover/files/hash-pool.ts'
import { closeFd, isSystemError, readAt } from '#mover/files/libc.ts'
import { isSameTime, statOfFd, type Stat } from '#mover/files/metadata.ts'
import { isMissing } from '#mover/files/missing.ts'
import { openContent } from '#mover/files/open-content.ts'
import type { Volume } from '#mover/files/volume.ts'
import { type ByteReader, ByteWriter, violated } from '#mover/wire/bytes.ts'
import { namesOf, printable, smallFileBytes, writeTime } from '#mover/wire/entries.ts'
import { endStates, frameTypes, hashMarks, type EndState, type FrameStream, type WantKind } from '#mover/wire/frames.ts'

export interface Want {
  /** Number of the entry within the pass. */
  readonly number: number
  /** For `blocks`, the target sends hashes of what it has. */
  readonly kind: WantKind
  readonly path: Buffer
}

export interface FileSenderOptions {
  readonly volume: Volume
  readonly frames: FrameStream
  readonly pool: HashPool
}

/** Bytes of content in a frame. */
const dataBytes = 4 * blockBytes

export class FileSender {
  readonly #options: FileSenderOptions
  readonly #folders: FolderCache
  readonly #hashes = new Map<number, TargetHashes>()
  readonly #buffer = Buffer.allocUnsafe(dataBytes)
  #failure: Error | undefined

  constructor(options: FileSenderOptions) {
    this.#options = options
    this.#folders = new FolderCache(options.volume.fd)
  }

  /** Frames of hashes that wait. */
  get queuedHashes(): number {
    return [...this.#hashes.values()].reduce((sum, { waiting }) => sum + waiting, 0)
  }

  expect({ number, kind }: Want): void {
    if (this.#hashes.has(number)) throw violated('a second request for a file')
    if (kind === 'blocks') this.#hashes.set(number, new TargetHashes())
  }

  /** Takes hashes of the target. */
  hear(from: ByteReader): void {
    const hashes = this.#hashes.get(from.u32())
    // The file may have vanished meanwhile.
    hashes?.add(from)
  }

  fail(error: unknown): void {
    this.#failure ??= asError(error)
    for (const hashes of this.#hashes.values()) hashes.fail(error)
  }

  /** Sends a file. One that has vanished is told so. */
  async send(want: Want): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure
    const { volume } = this.#options
    try {
      if (volume.kind === 'block') {
        await this.#sendContent(want, volume.fd, { size: volume.size })
        return
      }
      const opened = this.#open(want)
      if (typeof opened === 'string') {
        await this.#end(want, opened)
        return
      }
      try {
        await this.#sendFile(want, opened)
      } finally {
        closeFd(opened)
      }
    } finally {
      this.#hashes.delete(want.number)
    }
  }

  /** Sends the digest of a file; several may be made at the same time. */
  async sendDigest(want: Want): Promise<void> {
    const { volume, pool } = this.#options
    const opened = volume.kind === 'block' ? volume.fd : this.#open(want)
    let digest: Buffer | undefined
    if (typeof opened === 'number')
      try {
        const size = volume.kind === 'block' ? volume.size : statOfFd(opened).size
        digest = await contentDigest(pool, opened, size, () => undefined)
      } catch (error) {
        throw isSystemError(error, 'EIO', 'EACCES', 'EPERM') ? unreadable(error, want.path) : error
      } finally {
        if (volume.kind !== 'block') closeFd(opened)
      }
    const state = typeof opened === 'string' ? opened : digest === undefined ? 'changed' : 'complete'
    const body = new ByteWriter(64).u32(want.number).u8(endStates.indexOf(state))
    await this.#options.frames.send(frameTypes.digest, body.raw(digest ?? Buffer.alloc(0)).take())
  }

  #open({ path }: Want): number | EndState {
    const names = namesOf(path)
    const name = names.pop()
    if (name === undefined) throw violated('a request without a name')
    try {
      return openContent(this.#folders.open(names), name) ?? 'vanished'
    } catch (error) {
      if (isMissing(error)) return 'vanished'
      if (isSystemError(error, 'EACCES', 'EPERM')) return 'unreadable'
      throw unreadable(error, path)
    }
  }

  async #sendFile(want: Want, fd: number): Promise<void> {
    const stat = statOfFd(fd)
    if (stat.size <= smallFileBytes && want.kind === 'content') return this.#sendWhole(want, fd, stat)
    await this.#sendContent(want, fd, stat)
  }

  async #sendWhole(want: Want, fd: number, stat: Stat): Promise<void> {
    const content = readSmall(fd, stat.size)
    const state = content === undefined || !isSameContent(stat, statOfFd(fd)) ? 'changed' : 'complete'
    const head = new ByteWriter(64).u32(want.number).u8(endStates.indexOf(state))
    writeTime(head, stat.modified)
    // The buffer of small files is used again.
    await this.#options.frames.send(frameTypes.whole, head.take(), Buffer.from(content ?? Buffer.alloc(0)))
  }

  async #sendContent(want: Want, fd: number, stat: Pick<Stat, 'size'> & Partial<Stat>): Promise<void> {
    const begin = new ByteWriter(64).u32(want.number).size(stat.size)
    writeTime(begin, stat.modified ?? { seconds: 0, nanoseconds: 0 })
    await this.#options.frames.send(frameTypes.begin, begin.take())
    let isWhole: boolean
    try {
      isWhole =
        want.kind === 'blocks' ? await this.#sendChanges(want, fd, stat.size) : await this.#sendAll(want, fd, stat.size)
    } catch (error) {
      throw isSystemError(error, 'EIO', 'EACCES', 'EPERM') ? unreadable(error, want.path) : error
    }
    const now = this.#options.volume.kind === 'block' ? undefined : statOfFd(fd)
    const isSame = now === undefined || isSameContent(stat as Stat, now)
    await this.#end(want, isWhole && isSame ? 'complete' : 'changed')
  }

  async #end(want: Want, state: EndState): Promise<void> {
    await this.#options.frames.send(
      frameTypes.end,
      new ByteWriter(8).u32(want.number).u8(endStates.indexOf(state)).take(),
    )
  }

  /** Sends all data of a file that the target has emptied; false if the file became shorter. */
  async #sendAll({ number }: Want, fd: number, size: number): Promise<boolean> {
    const map = new DataMap(fd, size)
    for (let offset = Math.min(size, alignDown(map.nextData(0))); offset < size;) {
      const length = Math.min(dataBytes, size - offset)
      if (!(await this.#sendRange(number, fd, { offset, length }))) return false
      offset += length
      const next = alignDown(map.nextData(offset))
      if (next > offset) offset = Math.min(size, next)
    }
    return true
  }

  /** Sends a range without its blocks of zeros; false if the file ends within it. */
  async #sendRange(number: number, fd: number, { offset, length }: Range): Promise<boolean> {
    const got = readAt(fd, this.#buffer.subarray(0, length), offset)
    for (let at = 0; at < got;) {
      let end = at
      while (end < got && !isZero(this.#buffer, end, Math.min(got, end + blockBytes))) end += blockBytes
      if (end > at) await this.#sendData(number, offset + at, this.#buffer.subarray(at, Math.min(got, end)))
      at = end + blockBytes
    }
    return got === length
  }

  async #sendData(number: number, offset: number, bytes: Buffer): Promise<void> {
    // A copy: the connection keeps the bytes until they are sent.
    await this.#options.frames.send(
      frameTypes.data,
      new ByteWriter(16).u32(number).size(offset).take(),
      Buffer.from(bytes),
    )
  }

  async #sendZeros(number: number, offset: number, length: number): Promise<void> {
    await this.#options.frames.send(frameTypes.zeros, new ByteWriter(24).u32(number).size(offset).size(length).take())
  }

  /** Compares each block with the target's; false if the file became shorter. */
  async #sendChanges(want: Want, fd: number, size: number): Promise<boolean> {
    const theirs = this.#hashes.get(want.number)
    if (theirs === undefined) throw violated('a request that has ended')
    let done = 0
    for await (const group of blockGroups(this.#options.pool, fd, size)) {
      await this.#compareGroup(want, fd, { group, theirs, size })
      done += group.bytes
      await this.#options.frames.send(frameTypes.compared, new ByteWriter(16).u32(want.number).size(done).take())
    }
    return done === size
  }

  async #compareGroup(want: Want, fd: number, { group, theirs, size }: Compared): Promise<void> {
    const first = group.firstBlock
    const count = 'hashes' in group ? group.hashes.length / hashBytes : group.zeroBlocks
    for (let i = 0; i < count;) {
      const run = await theirs.runAt(first + i)
      // Both have zeros, or the target has nothing there.
      const length = Math.min(run.blocks, count - i)
      if ('hashes' in group) await this.#sendRun(want, fd, { group, at: i, length, run, size })
      else if (run.hashes !== undefined) await this.#zeroRun(want, { first: first + i, length, run, size })
      i += length
    }
  }

  /** Sends the blocks of a run of our own that differ. */
  async #sendRun(want: Want, fd: number, { group, at, length, run, size }: OwnRun): Promise<void> {
    const differs = (i: number): 'data' | 'zeros' | undefined => {
      const from = (at + i) * hashBytes
      const isOwnZero = isZeroHash(group.hashes, from)
      if (run.hashes === undefined) return isOwnZero ? undefined : 'data'
      const isSame = group.hashes.compare(run.hashes, i * hashBytes, (i + 1) * hashBytes, from, from + hashBytes) === 0
      return isSame ? undefined : isOwnZero ? 'zeros' : 'data'
    }
    for (let i = 0; i < length;) {
      const what = differs(i)
      let end = i + 1
      while (end < length && differs(end) === what && (what !== 'data' || end - i < dataBytes / blockBytes)) end++
      const range = rangeOf(group.firstBlock + at + i, end - i, size)
      if (what === 'zeros') await this.#sendZeros(want.number, range.offset, range.length)
      else if (what === 'data') await this.#sendBlocks(want.number, fd, range)
      i = end
    }
  }

  async #sendBlocks(number: number, fd: number, { offset, length }: Range): Promise<void> {
    const got = readAt(fd, this.#buffer.subarray(0, length), offset)
    if (got > 0) await this.#sendData(number, offset, this.#buffer.subarray(0, got))
  }

  /** Our blocks are zeros: those of the target that are not become zeros. */
  async #zeroRun(want: Want, { first, length, run, size }: ZeroRun): Promise<void> {
    for (let i = 0; i < length;) {
      let end = i
      while (end < length && !isZeroHash(run.hashes as Buffer, end * hashBytes)) end++
      if (end > i) {
        const range = rangeOf(first + i, end - i, size)
        await this.#sendZeros(want.number, range.offset, range.length)
      }
      i = end + 1
    }
  }
}

interface Range {
  readonly offset: number
  readonly length: number
}

interface Compared {
  readonly group: BlockGroup
  readonly theirs: TargetHashes
  readonly size: number
}

interface OwnRun {
  readonly group: Extract<BlockGroup, { hashes: Buffer }>
  /** Index of the run within the group, blocks. */
  readonly at: number
  readonly length: number
  readonly run: HashRun
  readonly size: number
}

interface ZeroRun {
  readonly first: number
  readonly length: number
  readonly run: HashRun
  readonly size: number
}

/** Consecutive blocks of the target: with hashes, or zeros, or beyond its end. */
interface HashRun {
  readonly blocks: number
  readonly hashes: Buffer | undefined
}

/** The hashes that the target has sent of one file, in order. */
class TargetHashes {
  readonly #runs: { first: number; blocks: number; hashes: Buffer | undefined }[] = []
  #next = 0
  #hasEnded = false
  #more: PromiseWithResolvers<undefined> | undefined
  #failure: Error | undefined

  get waiting(): number {
    return this.#runs.length
  }

  add(from: ByteReader): void {
    const mark = from.u8()
    if (this.#hasEnded) throw violated('hashes after their end')
    if (mark === hashMarks.end) this.#hasEnded = true
    else if (mark === hashMarks.zeros) this.#push(from.size(), undefined)
    else {
      const hashes = Buffer.from(from.rest())
      if (hashes.length === 0 || hashes.length % hashBytes !== 0) throw violated('hashes that are cut')
      this.#push(hashes.length / hashBytes, hashes)
    }
    this.#more?.resolve(undefined)
    this.#more = undefined
  }

  fail(error: unknown): void {
    this.#failure = asError(error)
    this.#more?.reject(error)
  }

  /** What the target has from this block on. Blocks are asked for in order. */
  async runAt(block: number): Promise<HashRun> {
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure
      const run = this.#runs[0]
      if (run === undefined) {
        if (this.#hasEnded) return { blocks: Infinity, hashes: undefined }
        this.#more = Promise.withResolvers()
        await this.#more.promise
      } else if (block >= run.first + run.blocks) this.#runs.shift()
      else {
        const skipped = block - run.first
        return { blocks: run.blocks - skipped, hashes: run.hashes?.subarray(skipped * hashBytes) }
      }
    }
  }

  #push(blocks: number, hashes: Buffer | undefined): void {
    if (blocks === 0 || !Number.isSafeInteger(this.#next + blocks)) throw violated('a run of no blocks')
    this.#runs.push({ first: this.#next, blocks, hashes })
    this.#next += blocks
  }
}

const zeros = Buffer.alloc(blockBytes)

function isZero(buffer: Buffer, from: number, to: number): boolean {
  return zeros.compare(buffer, from, to, 0, to - from) === 0
}

const alignDown = (offset: number): number => offset - (offset % blockBytes)

function rangeOf(block: number, blocks: number, size: number): Range {
  const offset = block * blockBytes
  return { offset, length: Math.min(size - offset, blocks * blockBytes) }
}

function isSameContent(a: Stat, b: Stat): boolean {
  return a.size === b.size && isSameTime(a.modified, b.modified)
}

export function unreadable(cause: unknown, path: Buffer): MoverError {
  return new MoverError('SourceUnreadable', `the source cannot read the file: ${String(cause)}`, {
    cause,
    path: printable(path),
  })
}
