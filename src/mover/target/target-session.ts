// The target's side of a round: makes the volume equal to the source, in place. Running it again after any interruption
// converges, because each step compares before it changes. All names are opened below the folder that they are in, and
// no link is followed, so that nothing outside of the volume is touched.
import { fsync } from 'node:fs'
import { promisify } from 'node:util'
import { MoverError, protocolVersion, type RoundOptions, type RoundResult } from '#mover/contract/index.ts'
import { smallDigest } from '#mover/files/content.ts'
import { FolderCache } from '#mover/files/folder-cache.ts'
import type { HashPool } from '#mover/files/hash-pool.ts'
import {
  changeMode,
  closeFd,
  dropCache,
  isSystemError,
  linkAt,
  makeDirectoryAt,
  makeLinkAt,
  makeNodeAt,
  openAt,
  openFlags,
  syncFileSystem,
} from '#mover/files/libc.ts'
import { Losses } from '#mover/files/losses.ts'
import {
  applyMetadata,
  isSameAttributes,
  isSameTime,
  readAttributes,
  statOfFd,
  tryStatAt,
  typeBits,
  type Metadata,
  type Stat,
} from '#mover/files/metadata.ts'
import { TimeSlices } from '#mover/files/time-slices.ts'
import { volumeStatus, type Volume } from '#mover/files/volume.ts'
import { lostAndFound, namesIn } from '#mover/files/walk.ts'
import { ByteReader, ByteWriter, violated } from '#mover/wire/bytes.ts'
import { isName, maxDepth, maxPathBytes, namesOf, printable, readEntry, type WireEntry } from '#mover/wire/entries.ts'
import { frameTypes, type FrameStream } from '#mover/wire/frames.ts'
import { FileReceiver, type Received } from './file-receiver.ts'
import { openTargetFolder, pathIn, type TargetFolder } from './folder.ts'
import { creditBytes, Pass } from './pass.ts'
import { removeTree } from './remove.ts'
import { isSameMetadata, isSameNode, lookAgain } from './repairs.ts'
import type { RoundCounts } from './round-counts.ts'

export interface TargetSessionOptions {
  readonly volume: Volume
  readonly frames: FrameStream
  readonly pool: HashPool
  readonly counts: RoundCounts
  readonly round: RoundOptions
}

/** The most passes that compare. The last one repairs nothing, or all that it has repaired was equal when read again. */
const maxComparisons = 4
/** The time of a file that is not complete, so that the next pass copies it again. */
const unsettledTime = { seconds: 0, nanoseconds: 999_999_999 }
/** If the volume has fewer free bytes than this, an ENOSPC for metadata means that the volume is full. */
const fullBytes = 1 << 20

/** Runs a round. Rejects with MoverError; `frames` is ended by the caller. */
export async function runRound(options: TargetSessionOptions): Promise<Omit<RoundResult, 'durationMs'>> {
  const session = new TargetSession(options)
  try {
    return await session.run()
  } catch (error) {
    throw session.explain(error)
  }
}

interface SourceHello {
  readonly isEmpty: boolean
  readonly size: number
}

class TargetSession {
  readonly #options: TargetSessionOptions
  readonly #frames: FrameStream
  readonly #counts: RoundCounts
  readonly #files: FileReceiver
  readonly #folders: FolderCache
  readonly #hello = Promise.withResolvers<SourceHello>()
  /** Folders that got rights for their owner, so that this process may fill them. */
  readonly #loosened = new Set<number>()
  #losses = new Losses()
  #pass: Pass | undefined
  /** The path that is worked on, for errors. */
  #path: Buffer = Buffer.alloc(0)

  constructor(options: TargetSessionOptions) {
    this.#options = options
    this.#frames = options.frames
    this.#counts = options.counts
    this.#files = new FileReceiver(options)
    this.#folders = new FolderCache(options.volume.fd)
    this.#hello.promise.catch(() => undefined)
  }

  async run(): Promise<Omit<RoundResult, 'durationMs'>> {
    const { round } = this.#options
    const failed = Promise.withResolvers<never>()
    failed.promise.catch(() => undefined)
    const fail = (error: unknown): void => {
      failed.reject(error)
      this.#hello.reject(error)
      this.#files.fail(error)
      this.#pass?.fail(error)
    }
    const listening = this.#listen().catch(fail)
    const working = this.#work()
    working.catch(() => undefined)
    try {
      const digest = await Promise.race([working, failed.promise])
      this.#frames.sendNow(frameTypes.done, Buffer.alloc(0))
      const { entries, bytes, created, updated, deleted, bytesChanged, bytesOnWire, unsettled } = this.#counts
      const sums = { entries, bytes, created, updated, deleted, bytesChanged, bytesOnWire, unsettled }
      const notKept = this.#losses.list
      return { mode: round.mode, ...sums, notKept, ...(digest && { verified: true, digest }) }
    } catch (error) {
      fail(error)
      await this.#frames.tell(errorToTell(this.explain(error)))
      throw error
    } finally {
      this.#frames.fail(new MoverError('Cancelled', 'the round has ended'))
      await Promise.allSettled([listening, working])
      await this.#close()
    }
  }

  /** The error as people need it. */
  explain(error: unknown): MoverError {
    if (error instanceof MoverError) return error
    const { code = '' } = error as { code?: string }
    const where = { cause: error, path: printable(this.#path) }
    const text = String(error)
    if (code === 'ENOSPC') return new MoverError('TargetFull', 'the target has no room left', where)
    if (code === 'EDQUOT') return new MoverError('QuotaExceeded', 'the quota of the target is used up', where)
    if (code !== '') return new MoverError('TargetUnwritable', `the target cannot be written: ${text}`, where)
    return new MoverError('Failed', text, where)
  }

  async #close(): Promise<void> {
    await this.#files.settled()
    for (const { fd } of this.#files.open) if (fd !== this.#options.volume.fd) closeFd(fd)
    this.#pass?.close()
    this.#folders.forget()
  }

  async #work(): Promise<string | undefined> {
    const { round, volume } = this.#options
    this.#frames.sendNow(
      frameTypes.hello,
      new ByteWriter(16)
        .u16(protocolVersion)
        .size(round.bandwidth ?? 0)
        .take(),
    )
    const { isEmpty } = await this.#hello.promise
    if (isEmpty && round.allowEmpty !== true && hasEntries(volume))
      throw new MoverError('SourceEmpty', 'the source has no entries, and the target has some, which would be deleted')
    let digest: string | undefined
    if (round.mode === 'final') digest = await this.#compareAll()
    else await this.#runPass(false)
    if (round.requireAll === true && this.#losses.count > 0) throw cannotKeep(this.#losses)
    return digest
  }

  /**
   * Compares everything, and repairs what differs in the same pass: after rounds of copying nearly all is equal, so a
   * pass that only copies would read everything once more than needed.
   */
  async #compareAll(): Promise<string> {
    const { volume } = this.#options
    // Devices have no sizes and times that tell what to copy, and in an empty volume nothing is equal.
    if (volume.kind === 'block' || !hasEntries(volume)) await this.#runPass(false)
    // Comparisons read the disk: they drop the pages in memory, and the kernel drops only pages that were flushed.
    this.#counts.phase = 'flushing'
    await flush(volume)
    for (let i = 0; i < maxComparisons; i++) {
      const pass = await this.#runPass(true)
      this.#counts.phase = 'flushing'
      await flush(volume)
      if (this.#counts.repairs === 0 || (await this.#lookAgain(pass))) return pass.digest
    }
    throw new MoverError('SourceChanged', 'the volumes differ again after each comparison', {
      path: printable(this.#path),
    })
  }

  /** True if all that the pass has repaired is equal now. */
  async #lookAgain(pass: Pass): Promise<boolean> {
    const repairs = pass.repairs.all
    if (repairs === undefined) return false
    this.#counts.phase = 'comparing'
    return lookAgain(repairs, {
      volume: this.#options.volume,
      files: this.#files,
      onCompared: ({ path, entry }, digest) => pass.addEntry(path, entry, undefined, digest),
    })
  }

  async #runPass(isComparing: boolean): Promise<Pass> {
    this.#losses = new Losses()
    this.#counts.begin(isComparing ? 'comparing' : 'copying')
    const pass = new Pass({ isComparing })
    this.#pass = pass
    this.#frames.sendNow(frameTypes.pass, Buffer.from([isComparing ? 1 : 0]))
    this.#frames.sendNow(frameTypes.credit, new ByteWriter(4).u32(creditBytes).take())
    if (this.#options.volume.kind === 'block') await this.#passDevice(pass)
    else await this.#passFolder(pass)
    await this.#files.idle()
    pass.close()
    return pass
  }

  async #listen(): Promise<void> {
    for await (const frame of this.#frames.frames()) {
      const { type, body } = frame
      if (type === frameTypes.hello) this.#greeted(new ByteReader(body))
      else if (type === frameTypes.entries) this.#currentPass().add(body)
      else if (type === frameTypes.passed) {
        const from = new ByteReader(body)
        this.#currentPass().end(from.u32())
        this.#counts.entriesTotal = this.#counts.entriesTotal ?? 0
      } else this.#files.hear(frame)
    }
  }

  #currentPass(): Pass {
    if (this.#pass === undefined) throw violated('entries that were not asked for')
    return this.#pass
  }

  #greeted(from: ByteReader): void {
    const version = from.u16()
    if (version !== protocolVersion)
      throw new MoverError(
        'Unsupported',
        `the source speaks version ${version} of the protocol, the target ${protocolVersion}`,
      )
    const { volume } = this.#options
    const isBlock = from.u8() === 1
    if (isBlock !== (volume.kind === 'block'))
      throw new MoverError('Unsupported', `one side is a block device, the other a folder`)
    const size = from.size()
    if (isBlock && size > volume.size)
      throw new MoverError(
        'TargetFull',
        `the device of the target has ${volume.size} bytes, that of the source ${size}`,
      )
    const isEmpty = from.u8() === 1
    const [entries, bytes] = [from.size(), from.size()]
    if (entries > 0) Object.assign(this.#counts, { entriesTotal: entries, bytesTotal: bytes })
    if (isBlock) Object.assign(this.#counts, { entriesTotal: 1, bytesTotal: size })
    this.#hello.resolve({ isEmpty, size })
  }

  async #passDevice(pass: Pass): Promise<void> {
    const { volume } = this.#options
    const { size } = await this.#hello.promise
    this.#counts.entries = 1
    const device = { number: 1, path: Buffer.alloc(0), fd: volume.fd, isDevice: true }
    const copy = (): Promise<void> =>
      this.#files.want({
        ...device,
        ownSize: volume.size,
        done: ({ state }) => this.#settle(device.path, state),
      })
    if (pass.isComparing)
      await this.#files.compare({
        ...device,
        size,
        onBytes: (bytes) => (this.#counts.bytes += bytes),
        done: async (digest) => {
          if (digest !== undefined) {
            pass.addToDigest(digest)
            return
          }
          this.#counts.bytes = 0
          this.#counts.repairs++
          pass.repairs.giveUp()
          await copy()
        },
      })
    else await copy()
    await pass.ended
  }

  async #passFolder(pass: Pass): Promise<void> {
    const slices = new TimeSlices()
    for (let body = await pass.next(); body !== undefined; body = await pass.next()) {
      const from = new ByteReader(body)
      while (!from.isAtEnd) {
        const entry = readEntry(from)
        if (entry === undefined) this.#leave(pass)
        else await this.#enter(pass, entry)
        if (slices.isOver()) await slices.rest()
      }
      this.#frames.sendNow(frameTypes.credit, new ByteWriter(4).u32(body.length).take())
    }
    if (pass.folder !== undefined || pass.announced !== this.#counts.entries || this.#counts.entries === 0)
      throw violated('a pass without its end')
  }

  async #enter(pass: Pass, entry: WireEntry): Promise<void> {
    const number = ++this.#counts.entries
    const { folder } = pass
    if (folder === undefined) {
      this.#enterRoot(pass, entry, number)
      return
    }
    if (!isName(entry.name) || (folder.depth === 0 && entry.name.equals(lostAndFound)))
      throw violated(`a name that may not be in a volume: ${printable(entry.name)}`)
    const path = pathIn(folder, entry.name)
    if (path.length > maxPathBytes || folder.depth > maxDepth) throw violated('folders that are nested too deeply')
    this.#path = path
    folder.names.add(entry.name)
    if (entry.kind === 'directory') this.#enterFolder(pass, folder, entry)
    else await this.#place({ pass, folder, entry, path, number })
  }

  #enterRoot(pass: Pass, entry: WireEntry, number: number): void {
    if (number !== 1 || entry.name.length > 0 || entry.kind !== 'directory')
      throw violated('a volume that is no folder')
    const fd = openAt(this.#options.volume.fd, itself, openFlags.directory)
    pass.folder = openTargetFolder(fd, entry, undefined, false)
    pass.open.add(pass.folder)
    if (pass.isComparing) pass.addEntry(pass.folder.path, entry, undefined)
  }

  #enterFolder(pass: Pass, parent: TargetFolder, entry: WireEntry): void {
    const { name } = entry
    const found = parent.isFresh ? undefined : tryStatAt(parent.fd, name)
    const isThere = found?.kind === 'directory'
    if (!isThere) {
      if (found !== undefined) this.#remove(parent, name)
      makeDirectoryAt(parent.fd, name, 0o700)
      this.#created(parent)
    }
    const fd = this.#openFolder(parent, name)
    pass.folder = openTargetFolder(fd, entry, parent, !isThere)
    pass.open.add(pass.folder)
    if (pass.isComparing) pass.addEntry(pass.folder.path, entry, undefined)
  }

  /** Opens a folder. If this process is not root, it may first have to give the folder's owner the rights to it. */
  #openFolder(parent: TargetFolder, name: Buffer): number {
    const open = (): number => openAt(parent.fd, name, openFlags.directory)
    if (process.geteuid?.() === 0) return open()
    const stat = tryStatAt(parent.fd, name)
    if (stat === undefined || (stat.mode & 0o700) === 0o700) return open()
    changeModeAt(parent.fd, name, stat.mode | 0o700)
    const fd = open()
    this.#loosened.add(fd)
    return fd
  }

  /** The end of a folder: what the source does not have is removed. */
  #leave(pass: Pass): void {
    const { folder } = pass
    if (folder === undefined) throw violated('an end without a folder')
    this.#path = folder.path
    if (!folder.isFresh)
      for (const name of [...namesIn(folder.fd)].filter((name) => !folder.names.has(name)))
        if (folder.depth > 0 || !name.equals(lostAndFound)) this.#remove(folder, name)
    folder.hasEnded = true
    pass.folder = folder.parent
    this.#finishFolder(pass, folder)
  }

  /** Gives a folder its metadata once nothing below it changes any more. */
  #finishFolder(pass: Pass, folder: TargetFolder): void {
    if (!folder.hasEnded || folder.pending > 0) return
    const { fd, entry, parent } = folder
    this.#path = folder.path
    const stat = statOfFd(fd)
    const attributes = (): Metadata['attributes'] => readAttributes({ folder: fd }).kept
    const before = this.#counts.repairs
    this.#apply({ fd, stat, wanted: entry, path: folder.path, attributes })
    // A mode that only this pass has changed is put back, which is no repair.
    if (this.#loosened.delete(folder.fd) && isSameMetadata({ ...entry, mode: stat.mode }, stat))
      this.#counts.repairs = before
    if (pass.isComparing && (folder.isRepaired || this.#counts.repairs !== before))
      pass.repairs.add({ path: folder.path, entry, names: folder.names })
    pass.open.delete(folder)
    closeFd(fd)
    if (parent === undefined) return
    parent.pending--
    this.#finishFolder(pass, parent)
  }

  #remove(folder: TargetFolder, name: Buffer): void {
    this.#path = pathIn(folder, name)
    // A folder that is removed may be the one that was opened last.
    this.#folders.forget()
    const removed = removeTree(folder.fd, name)
    folder.isRepaired = true
    this.#counts.deleted += removed
    this.#counts.repairs += removed
  }

  #created(folder: TargetFolder): void {
    folder.isRepaired = true
    this.#counts.created++
    this.#counts.repairs++
  }

  /** Makes a name in a folder equal to an entry of the source: one of any kind but a folder. */
  async #place(placed: Placed): Promise<void> {
    const { pass, folder, entry, path } = placed
    const first = entry.link === 0 ? undefined : pass.links.get(entry.link)
    if (entry.isLastLink) pass.forgetLink(entry.link)
    if (first !== undefined) {
      this.#placeLink(placed, first)
      return
    }
    let found = folder.isFresh ? undefined : tryStatAt(folder.fd, entry.name)
    if (found !== undefined && (found.kind !== entry.kind || !pass.claims(found, entry))) {
      this.#remove(folder, entry.name)
      found = undefined
    }
    if (entry.link > 0 && !entry.isLastLink) pass.addLink(entry.link, path)
    if (entry.kind === 'file') return this.#placeFile(placed, found)
    if (pass.isComparing) pass.addEntry(path, entry, undefined)
    this.#placeNode(placed, found)
  }

  /** Makes a name a hard link to a file that this pass has placed before. */
  #placeLink({ pass, folder, entry, path }: Placed, first: Buffer): void {
    const names = namesOf(first)
    const firstName = names.pop() as Buffer
    const firstFolder = this.#folders.open(names)
    const wanted = tryStatAt(firstFolder, firstName)
    // The file was not made under its first name, for example because this process may not make devices.
    if (wanted === undefined) {
      this.#losses.add(printable(path), 'hard link')
      return
    }
    if (pass.isComparing) pass.addEntry(path, entry, first)
    const found = folder.isFresh ? undefined : tryStatAt(folder.fd, entry.name)
    if (found?.inode === wanted.inode) return
    if (found !== undefined) this.#remove(folder, entry.name)
    linkAt(this.#folders.open(names), firstName, folder.fd, entry.name)
    this.#created(folder)
    if (pass.isComparing) pass.repairs.add({ path, entry, first })
  }

  async #placeFile(placed: Placed, found: Stat | undefined): Promise<void> {
    const { pass, entry } = placed
    // Size and time that differ say enough; those that are equal do not prove that the content is.
    const isSame = found !== undefined && found.size === entry.size && isSameTime(found.modified, entry.modified)
    if (!isSame) await this.#copyFile(placed, found)
    else if (pass.isComparing) await this.#compareFile(placed, found)
    else {
      this.#counts.bytes += entry.size
      this.#applyAt(placed, found, attributesAt(placed))
    }
  }

  async #copyFile(placed: Placed, found: Stat | undefined): Promise<void> {
    const { pass, folder, entry, path, number } = placed
    const fd = found === undefined ? this.#create(folder, entry) : this.#openToWrite(folder, entry.name, found)
    folder.pending++
    if (found === undefined) this.#created(folder)
    else {
      this.#counts.updated++
      this.#counts.repairs++
    }
    if (pass.isComparing) pass.repairs.add({ path, entry, isContentNew: true })
    const done = (received: Received): void => this.#finishFile(placed, fd, received)
    if (entry.size === 0 && found === undefined) {
      done({ state: 'complete', size: 0, modified: entry.modified })
      return
    }
    await this.#files.want({ number, path, fd, ownSize: found?.size ?? 0, done })
  }

  async #compareFile(placed: Placed, found: Stat): Promise<void> {
    const { pass, folder, entry, path, number } = placed
    if (entry.digest !== undefined) {
      const { digest, attributes } = this.#readSmallFile(placed, found)
      if (digest?.equals(entry.digest) !== true) return this.#copyFile(placed, found)
      this.#counts.bytes += entry.size
      pass.addEntry(path, entry, undefined, digest)
      this.#applyAt(placed, found, attributes)
      return
    }
    let read = 0
    folder.pending++
    await this.#files.compare({
      number,
      path,
      fd: this.#openToRead(folder, entry.name, found),
      size: entry.size,
      onBytes: (bytes) => {
        read += bytes
        this.#counts.bytes += bytes
      },
      done: async (digest) => {
        this.#path = path
        if (digest !== undefined) {
          pass.addEntry(path, entry, undefined, digest)
          this.#applyAt(placed, found, attributesAt(placed))
        } else {
          this.#counts.bytes -= read
          await this.#copyFile(placed, found)
        }
        folder.pending--
        this.#finishFolder(pass, folder)
      },
    })
  }

  /** To ask the open file for its attributes takes a fifth of the time of asking by its name. */
  #readSmallFile({ folder, entry }: Placed, found: Stat) {
    const file = this.#openToRead(folder, entry.name, found)
    try {
      dropCache(file)
      return { digest: smallDigest(file, entry.size), attributes: readAttributes({ file }).kept }
    } finally {
      closeFd(file)
    }
  }

  /**
   * Opens a file for reading, even if its mode does not let its owner read it: this process, which runs as the owner,
   * then changes the mode until the file is open.
   */
  #openToRead(folder: TargetFolder, name: Buffer, { mode }: Stat): number {
    const open = (): number => openAt(folder.fd, name, openFlags.read | openFlags.nonBlocking)
    try {
      return open()
    } catch (error) {
      if (!isSystemError(error, 'EACCES')) throw error
      changeModeAt(folder.fd, name, mode | 0o400)
      try {
        return open()
      } finally {
        changeModeAt(folder.fd, name, mode)
      }
    }
  }

  #create(folder: TargetFolder, { name, mode }: WireEntry): number {
    const flags = openFlags.readWrite | openFlags.create | openFlags.exclusive
    return openAt(folder.fd, name, flags, (mode & 0o777) | 0o600)
  }

  #openToWrite(folder: TargetFolder, name: Buffer, found: Stat): number {
    const flags = openFlags.readWrite | openFlags.nonBlocking
    try {
      return openAt(folder.fd, name, flags)
    } catch (error) {
      if (!isSystemError(error, 'EACCES')) throw error
      changeModeAt(folder.fd, name, found.mode | 0o600)
      return openAt(folder.fd, name, flags)
    }
  }

  #finishFile(placed: Placed, fd: number, received: Received): void {
    const { pass, folder, entry, path } = placed
    this.#path = path
    this.#settle(path, received.state)
    const isComplete = received.state === 'complete'
    const wanted = { ...entry, modified: isComplete ? received.modified : unsettledTime }
    const stat = statOfFd(fd)
    this.#apply({ fd, stat, wanted, path, attributes: () => attributesAt(placed) })
    closeFd(fd)
    folder.pending--
    this.#finishFolder(pass, folder)
  }

  /** Counts a file whose content did not arrive completely; throws MoverError in a final round. */
  #settle(path: Buffer, state: Received['state']): void {
    if (state === 'complete') return
    const where = printable(path)
    const isFinal = this.#options.round.mode === 'final'
    if (state === 'unreadable') {
      if (isFinal) throw new MoverError('SourceUnreadable', 'the source mover may not read the file', { path: where })
      this.#losses.add(where, 'unreadable')
    } else if (isFinal)
      throw new MoverError('SourceChanged', `the file has ${state} while it was copied`, { path: where })
    this.#counts.unsettled++
  }

  /** Symbolic links, FIFOs, sockets and devices. */
  #placeNode(placed: Placed, found: Stat | undefined): void {
    const { pass, folder, entry, path } = placed
    let now = found
    if (now !== undefined && !isSameNode({ folder: folder.fd, name: entry.name, entry, found: now })) {
      this.#remove(folder, entry.name)
      now = undefined
    }
    if (now === undefined) {
      if (!this.#makeNode(folder, entry, path)) return
      this.#created(folder)
      if (pass.isComparing) pass.repairs.add({ path, entry })
      now = tryStatAt(folder.fd, entry.name)
    }
    if (now !== undefined) this.#applyAt(placed, now, attributesAt(placed))
  }

  /** Makes the entry; false if this process may not make devices. */
  #makeNode(folder: TargetFolder, entry: WireEntry, path: Buffer): boolean {
    if (entry.kind === 'symlink') {
      makeLinkAt(folder.fd, entry.name, entry.target)
      return true
    }
    try {
      makeNodeAt(folder.fd, entry.name, typeBits[entry.kind] | 0o600, entry.device)
      return true
    } catch (error) {
      if (!isSystemError(error, 'EPERM', 'EINVAL', 'ENOTSUP')) throw error
      this.#losses.add(printable(path), 'device', error.code)
      return false
    }
  }

  /** Gives an entry that is there its metadata, if it differs. */
  #applyAt({ pass, folder, entry, path }: Placed, stat: Stat, attributes: Metadata['attributes']): void {
    if (isSameMetadata(entry, stat) && isSameAttributes(entry.attributes, attributes)) return
    if (pass.isComparing) pass.repairs.add({ path, entry })
    const fd = openAt(folder.fd, entry.name, openFlags.path)
    try {
      this.#apply({ fd, stat, wanted: entry, path, attributes: () => attributes })
    } finally {
      closeFd(fd)
    }
  }

  #apply({ fd, stat, wanted, path, attributes }: Applied): void {
    const now: Metadata = { ...stat, attributes: attributes() }
    if (isSameMetadata(wanted, stat) && isSameAttributes(wanted.attributes, now.attributes)) return
    const lost = applyMetadata(fd, wanted, now)
    if (lost.length === 0) this.#counts.repairs++
    for (const { reason, detail } of lost) {
      if (detail.endsWith('ENOSPC') && volumeStatus(this.#options.volume).freeBytes < fullBytes)
        throw new MoverError('TargetFull', `the target has no room for ${detail}`, { path: printable(path) })
      this.#losses.add(printable(path), reason, detail)
    }
  }
}

interface Placed {
  readonly pass: Pass
  readonly folder: TargetFolder
  readonly entry: WireEntry
  readonly path: Buffer
  readonly number: number
}

interface Applied {
  readonly fd: number
  readonly stat: Stat
  readonly wanted: Metadata
  readonly path: Buffer
  readonly attributes: () => Metadata['attributes']
}

const itself = Buffer.from('.')

const attributesAt = ({ folder, entry }: Placed): Metadata['attributes'] =>
  readAttributes({ folder: folder.fd, name: entry.name }).kept

const fsyncFile = promisify(fsync)

/** Writes everything to disk. syncfs(2) of a device node means the file system that the node is in, not the device. */
async function flush({ kind, fd }: Volume): Promise<void> {
  await (kind === 'block' ? fsyncFile(fd) : syncFileSystem(fd))
}

function changeModeAt(folder: number, name: Buffer, mode: number): void {
  const fd = openAt(folder, name, openFlags.path)
  try {
    changeMode(fd, mode)
  } finally {
    closeFd(fd)
  }
}

function hasEntries({ kind, fd }: Volume): boolean {
  if (kind === 'block') return false
  for (const name of namesIn(fd)) if (!name.equals(lostAndFound)) return true
  return false
}

function cannotKeep(losses: Losses): MoverError {
  const { count, named } = losses.list
  const examples = named.slice(0, 3).map(({ path, reason }) => `${path} (${reason})`)
  return new MoverError('CannotKeep', `${count} things cannot be kept: ${examples.join(', ')}`)
}

function errorToTell({ code, message, path }: MoverError) {
  return { code, message, ...(path !== undefined && { path }) }
}
