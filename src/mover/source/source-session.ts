// The source's side of a round: walks the volume as the target asks for it, and sends the files that it wants. Nothing
// in the volume is changed, and nothing outside of it is read.
import { MoverError, protocolVersion } from '#mover/contract/index.ts'
import { smallDigest } from '#mover/files/content.ts'
import type { HashPool } from '#mover/files/hash-pool.ts'
import { closeFd, isSystemError, readLinkAt } from '#mover/files/libc.ts'
import { readAttributes, type Attribute } from '#mover/files/metadata.ts'
import { isMissing } from '#mover/files/missing.ts'
import { openContent } from '#mover/files/open-content.ts'
import { TimeSlices } from '#mover/files/time-slices.ts'
import type { Volume } from '#mover/files/volume.ts'
import { namesIn, walk, lostAndFound, type Visit } from '#mover/files/walk.ts'
import { ByteReader, ByteWriter, violated } from '#mover/wire/bytes.ts'
import { maxDepth, maxPathBytes, printable, smallFileBytes, writeEnd, writeEntry } from '#mover/wire/entries.ts'
import { frameTypes, wantKinds, type Frame, type FrameStream } from '#mover/wire/frames.ts'
import { FileSender, unreadable, type Want } from './file-sender.ts'
import { LinkTable } from './survey.ts'

export interface Totals {
  readonly entries: number
  readonly bytes: number
}

export interface SourceSessionOptions {
  readonly volume: Volume
  readonly frames: FrameStream
  readonly pool: HashPool
  /** Of the last survey or pass. */
  readonly totals: Totals | undefined
  /** Called with the bound that the target asks for. */
  readonly onBandwidth: (bytesPerSecond: number) => void
}

const entriesFrameBytes = 1 << 15
/** Inodes with several names of which not all were seen; each takes some 200 bytes here and its path in the target. */
const maxOpenLinks = 1_000_000
const maxQueuedWants = 1024
const maxQueuedHashFrames = 4096
/** Files whose digests are made at the same time. */
const maxDigesting = 4

/** Answers a target until it is done. Resolves with the totals of its last pass. */
export async function serveTarget(options: SourceSessionOptions): Promise<Totals | undefined> {
  const session = new SourceSession(options)
  return session.run()
}

class SourceSession {
  readonly #options: SourceSessionOptions
  readonly #frames: FrameStream
  readonly #sender: FileSender
  #credit = 0
  #credited: PromiseWithResolvers<undefined> | undefined
  readonly #wants: Want[] = []
  readonly #digests: Want[] = []
  #digesting = 0
  #wanted: PromiseWithResolvers<undefined> | undefined
  #isPassing = false
  #totals: Totals | undefined

  constructor(options: SourceSessionOptions) {
    this.#options = options
    this.#frames = options.frames
    this.#sender = new FileSender(options)
    this.#totals = options.totals
  }

  async run(): Promise<Totals | undefined> {
    const failed = Promise.withResolvers<never>()
    const fail = (error: unknown): void => {
      failed.reject(error)
      this.#credited?.reject(error)
      this.#wanted?.reject(error)
      this.#sender.fail(error)
    }
    failed.promise.catch(() => undefined)
    const sending = this.#send().catch(fail)
    try {
      await Promise.race([this.#listen(fail), failed.promise])
      return this.#totals
    } catch (error) {
      fail(error)
      throw error
    } finally {
      fail(new MoverError('Cancelled', 'the round has ended'))
      await sending
    }
  }

  async #listen(fail: (error: unknown) => void): Promise<void> {
    let isGreeted = false
    for await (const frame of this.#frames.frames()) {
      if (frame.type === frameTypes.done) return
      if (frame.type === frameTypes.hello) {
        if (isGreeted) throw violated('a second greeting')
        isGreeted = true
        this.#greet(frame)
        continue
      }
      if (!isGreeted) throw violated('a frame before its greeting')
      this.#hear(frame, fail)
    }
  }

  #hear({ type, body }: Frame, fail: (error: unknown) => void): void {
    const from = new ByteReader(body)
    if (type === frameTypes.pass) {
      if (this.#isPassing) throw violated('a pass within a pass')
      this.#isPassing = true
      // Each pass begins with credit of its own; what the former one has left does not add to it.
      this.#credit = 0
      this.#pass(from.u8() === 1).catch(fail)
    } else if (type === frameTypes.credit) {
      this.#credit += from.u32()
      if (this.#credit > 1 << 26) throw violated('a credit without end')
      this.#credited?.resolve(undefined)
      this.#credited = undefined
    } else if (type === frameTypes.want) {
      this.#want(from, fail)
    } else if (type === frameTypes.hashes) {
      if (this.#sender.queuedHashes >= maxQueuedHashFrames) throw violated('too many hashes at a time')
      this.#sender.hear(from)
    } else throw violated(`a frame of type ${type}`)
  }

  #want(from: ByteReader, fail: (error: unknown) => void): void {
    if (this.#wants.length + this.#digests.length >= maxQueuedWants) throw violated('too many requests at a time')
    const number = from.u32()
    const kind = wantKinds[from.u8()]
    if (kind === undefined) throw violated('a request of an unknown kind')
    const want = { number, kind, path: Buffer.from(from.rest()) }
    if (kind === 'digest') {
      this.#digests.push(want)
      this.#makeDigests(fail)
      return
    }
    this.#sender.expect(want)
    this.#wants.push(want)
    this.#wanted?.resolve(undefined)
    this.#wanted = undefined
  }

  #makeDigests(fail: (error: unknown) => void): void {
    while (this.#digesting < maxDigesting) {
      const want = this.#digests.shift()
      if (want === undefined) return
      this.#digesting++
      const ended = this.#sender.sendDigest(want).finally(() => {
        this.#digesting--
        this.#makeDigests(fail)
      })
      ended.catch(fail)
    }
  }

  #greet({ body }: Frame): void {
    const from = new ByteReader(body)
    const version = from.u16()
    if (version !== protocolVersion)
      throw new MoverError(
        'Unsupported',
        `the target speaks version ${version} of the protocol, the source ${protocolVersion}`,
      )
    const bandwidth = from.size()
    if (bandwidth > 0) this.#options.onBandwidth(bandwidth)
    const { volume } = this.#options
    const { entries = 0, bytes = 0 } = this.#totals ?? {}
    const hello = new ByteWriter()
      .u16(protocolVersion)
      .u8(volume.kind === 'block' ? 1 : 0)
      .size(volume.size)
    hello
      .u8(isEmptyVolume(volume) ? 1 : 0)
      .size(entries)
      .size(bytes)
    this.#frames.sendNow(frameTypes.hello, hello.take())
  }

  async #pass(hasDigests: boolean): Promise<void> {
    const { volume } = this.#options
    const totals = volume.kind === 'block' ? { entries: 1, bytes: volume.size } : await this.#passFolder(hasDigests)
    this.#totals = totals
    this.#isPassing = false
    await this.#frames.send(frameTypes.passed, new ByteWriter().u32(totals.entries).size(totals.bytes).take())
  }

  async #passFolder(hasDigests: boolean): Promise<Totals> {
    const slices = new TimeSlices()
    const links = new LinkTable()
    const to = new ByteWriter(entriesFrameBytes)
    let [entries, bytes] = [0, 0]
    const flush = async (): Promise<void> => {
      if (to.length === 0) return
      const body = to.take()
      await this.#spend(body.length)
      await this.#frames.send(frameTypes.entries, body)
    }
    const steps = walk(this.#options.volume.fd, { maxDepth, maxPathBytes, onSkipped: skipped })
    for (const step of steps) {
      if ('left' in step) writeEnd(to)
      else {
        entries++
        bytes += step.entry.stat.kind === 'file' ? step.entry.stat.size : 0
        this.#write(to, step.entry, { links, hasDigests })
      }
      if (to.length >= entriesFrameBytes) await flush()
      if (slices.isOver()) {
        // What was found until now may need work of the target, which waits for it.
        await flush()
        await slices.rest()
      }
    }
    await flush()
    return { entries, bytes }
  }

  #write(to: ByteWriter, visit: Visit, { links, hasDigests }: { links: LinkTable; hasDigests: boolean }): void {
    const { folder, name, stat, depth } = visit
    const hasNames = stat.links > 1 && stat.kind !== 'directory'
    const target = stat.kind === 'symlink' ? tryReadLink(folder, name) : undefined
    if (stat.kind === 'symlink' && target === undefined) return
    const { link, isFirst, isLast } = hasNames ? links.see(stat) : { link: 0, isFirst: true, isLast: false }
    if (links.size > maxOpenLinks)
      throw new MoverError('Unsupported', `more than ${maxOpenLinks} files have further names outside of what was read`)
    const needsDigest = hasDigests && isFirst && stat.kind === 'file' && stat.size <= smallFileBytes
    const { attributes, digest } = needsDigest
      ? readSmallFile(visit)
      : { attributes: readAttributes(depth === 0 ? { folder } : { folder, name }).kept, digest: undefined }
    writeEntry(to, stat, attributes, { name, link, isLastLink: isLast, digest, ...(target && { target }) })
  }

  /** Waits until the target has room for this many bytes of entries. */
  async #spend(bytes: number): Promise<void> {
    while (this.#credit < bytes) {
      if (this.#frames.failure !== undefined) throw this.#frames.failure
      this.#credited = Promise.withResolvers()
      await this.#credited.promise
    }
    this.#credit -= bytes
  }

  async #send(): Promise<void> {
    for (;;) {
      const want = this.#wants.shift()
      if (want === undefined) {
        this.#wanted = Promise.withResolvers()
        await this.#wanted.promise
      } else await this.#sender.send(want)
    }
  }
}

function skipped(path: Buffer, reason: 'other file system' | 'unreadable' | 'too deep'): void {
  // The survey names it. A folder that is left out without a word would be deleted in the target.
  if (reason === 'other file system') return
  const where = printable(path)
  if (reason === 'too deep')
    throw new MoverError(
      'Unsupported',
      `the folder is nested too deeply (more than ${maxDepth} folders or ${maxPathBytes} bytes)`,
      { path: where },
    )
  throw new MoverError('SourceUnreadable', 'the source mover may not read the folder', { path: where })
}

export function isEmptyVolume({ kind, fd }: Volume): boolean {
  if (kind === 'block') return false
  for (const name of namesIn(fd)) if (!name.equals(lostAndFound)) return false
  return true
}

function changed(path: Buffer): MoverError {
  return new MoverError('SourceChanged', 'the file changed while it was compared', { path: printable(path) })
}

function tryReadLink(folder: number, name: Buffer): Buffer | undefined {
  try {
    return readLinkAt(folder, name)
  } catch (error) {
    if (isMissing(error) || isSystemError(error, 'EINVAL')) return undefined
    throw error
  }
}

/** The digest and the attributes of a file. To ask the open file for its attributes takes a fifth of the time. */
function readSmallFile({ folder, name, stat, path }: Visit): {
  readonly digest: Buffer
  readonly attributes: readonly Attribute[]
} {
  let file: number | undefined
  try {
    file = openContent(folder, name)
    const digest = file === undefined ? undefined : smallDigest(file, stat.size)
    if (file === undefined || digest === undefined) throw changed(path())
    return { digest, attributes: readAttributes({ file }).kept }
  } catch (error) {
    throw isSystemError(error, 'EIO', 'EACCES', 'EPERM') ? unreadable(error, path()) : error
  } finally {
    if (file !== undefined) closeFd(file)
  }
}
