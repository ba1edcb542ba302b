// One pass over all entries: what the source has sent and the target has not handled yet, and what the pass remembers of
// files with several names.
import { createHash, hash } from 'node:crypto'
import { asError, MoverError } from '#mover/contract/index.ts'
import { closeFd } from '#mover/files/libc.ts'
import type { Stat } from '#mover/files/metadata.ts'
import { ByteWriter, violated } from '#mover/wire/bytes.ts'
import { digestBytes, writeTime, type WireEntry } from '#mover/wire/entries.ts'
import type { TargetFolder } from './folder.ts'
import { Repairs } from './repairs.ts'

/** Bytes of entries that the source may send ahead. */
export const creditBytes = 1 << 19
/** Paths of files with several names, of which not all were seen, bytes. */
const maxLinkBytes = 256 << 20

export class Pass {
  /** Contents are compared even where size and time are equal. */
  readonly isComparing: boolean
  /** What this pass has changed, if it compares. */
  readonly repairs = new Repairs()
  /** The folder that entries are in now. */
  folder: TargetFolder | undefined
  /** Folders whose descriptors are open. */
  readonly open = new Set<TargetFolder>()
  /** Paths of files with several names, by the source's number. */
  readonly links = new Map<number, Buffer>()
  /** Numbers of the source by own inodes with several names. */
  readonly #claimed = new Map<string, number>()
  readonly #queue: Buffer[] = []
  readonly #ended = Promise.withResolvers<undefined>()
  #queued = 0
  #linkBytes = 0
  #entries: number | undefined
  #changed = Promise.withResolvers<undefined>()
  #failure: Error | undefined
  readonly #sum = Buffer.alloc(digestBytes)

  constructor({ isComparing }: { isComparing: boolean }) {
    this.isComparing = isComparing
    this.#changed.promise.catch(() => undefined)
    this.#ended.promise.catch(() => undefined)
  }

  get ended(): Promise<undefined> {
    return this.#ended.promise
  }

  get digest(): string {
    return createHash('sha256').update(this.#sum).digest('hex')
  }

  /** Entries that the source says it has sent; undefined until its end. */
  get announced(): number | undefined {
    return this.#entries
  }

  add(body: Buffer): void {
    this.#queued += body.length
    if (this.#entries !== undefined) throw violated('entries after their end')
    if (this.#queued > creditBytes) throw violated('more entries than there is room for')
    // A copy: the frame is a part of a larger buffer.
    this.#queue.push(Buffer.from(body))
    this.#tell()
  }

  end(entries: number): void {
    this.#entries = entries
    this.#ended.resolve(undefined)
    this.#tell()
  }

  fail(error: unknown): void {
    this.#failure ??= asError(error)
    this.#ended.reject(error)
    this.#changed.reject(error)
  }

  /** The next frame of entries; undefined after the last one. */
  async next(): Promise<Buffer | undefined> {
    await this.#until(() => this.#queue.length > 0 || this.#entries !== undefined)
    const body = this.#queue.shift()
    this.#queued -= body?.length ?? 0
    return body
  }

  addLink(link: number, path: Buffer): void {
    this.#linkBytes += path.length + 100
    if (this.#linkBytes > maxLinkBytes)
      throw new MoverError('Unsupported', 'too many files have further names outside of what was read')
    this.links.set(link, path)
  }

  forgetLink(link: number): void {
    const path = this.links.get(link)
    if (path === undefined) return
    this.#linkBytes -= path.length + 100
    this.links.delete(link)
  }

  /**
   * True if this file of the target may become that entry: no other entry may share its inode, unless both are names of
   * one file in the source.
   */
  claims(found: Stat, { link }: WireEntry): boolean {
    if (found.kind === 'directory' || found.links === 1) return true
    if (link === 0) return false
    const owner = this.#claimed.get(found.inode)
    if (owner === undefined) this.#claimed.set(found.inode, link)
    return owner === undefined || owner === link
  }

  /** Adds an entry to the digest of the round, in whatever order. */
  addEntry(path: Buffer, entry: WireEntry, first: Buffer | undefined, content?: Buffer): void {
    const to = new ByteWriter(256).bytes16(path.subarray(0, 65_535)).u8(0).text(entry.kind)
    to.u16(entry.mode).u32(entry.uid).u32(entry.gid).size(entry.size).u32(entry.device.major).u32(entry.device.minor)
    writeTime(to, entry.modified)
    to.bytes16(entry.target).bytes16(first ?? Buffer.alloc(0))
    for (const { name, value } of entry.attributes) to.bytes16(name).bytes32(value)
    if (first === undefined) to.raw(content ?? entry.digest ?? Buffer.alloc(0))
    this.addToDigest(hash('sha256', to.take(), 'buffer'))
  }

  addToDigest(bytes: Buffer): void {
    let carry = 0
    for (let i = digestBytes - 1; i >= 0; i--) {
      const sum = (this.#sum[i] ?? 0) + (bytes[i] ?? 0) + carry
      this.#sum[i] = sum & 0xff
      carry = sum >> 8
    }
  }

  close(): void {
    for (const { fd } of this.open) closeFd(fd)
    this.open.clear()
  }

  async #until(isTrue: () => boolean): Promise<void> {
    while (!isTrue()) {
      if (this.#failure !== undefined) throw this.#failure
      await this.#changed.promise
    }
    if (this.#failure !== undefined) throw this.#failure
  }

  #tell(): void {
    const changed = this.#changed
    this.#changed = Promise.withResolvers()
    this.#changed.promise.catch(() => undefined)
    changed.resolve(undefined)
  }
}
