// Writes lines to a file or to standard output in bounded memory: lines that a slow disk does not take in time are
// dropped and counted. A writer never waits. Not pino's destination: it does not rotate files, and it keeps lines that
// a full disk refuses until its buffer is full.
import { open, readdir, rename, rm, type FileHandle } from 'node:fs/promises'
import { basename, dirname, extname, join } from 'node:path'

export interface LineFileOptions {
  /** A file, appended to and created where missing (mode 0600); `-` is standard output. */
  readonly path: string
  /** Characters that may wait for the disk; further lines are dropped. Default 16 Mi. */
  readonly maxWaiting?: number
  /** A file that reaches this size is renamed to `NAME-TIME.EXT` and a new one is begun, bytes. Default 0: never. */
  readonly maxFileBytes?: number
  /** How many renamed files are kept; the oldest are deleted. Default 0: all. */
  readonly maxBackups?: number
  /** The age at which renamed files are deleted, milliseconds. Default 0: never. */
  readonly maxAgeMs?: number
  /** Called when lines are dropped, with their number and the cause. */
  readonly onDropped?: (lines: number, error: Error) => void
  /** Gives the time in the names of renamed files. Default: the wall clock. */
  readonly now?: () => Date
}

export interface LineFile extends AsyncDisposable {
  /**
   * Queues a line, given without its line end. When the queue is full, the line is dropped and `onDropped` is called.
   */
  write(line: string): void
  /** Closes the file and opens its path again: call it after renaming the file. */
  reopen(): void
  /** Resolves when every line so far was written or dropped. */
  flushed(): Promise<void>
}

const maxWriteLength = 256 * 1024
/** How long closing waits for the disk, milliseconds. */
const closeMs = 2000

/** Opens the file for appending. Rejects with the system's error when it cannot be opened. */
export async function openLineFile(options: LineFileOptions): Promise<LineFile> {
  const target = options.path === '-' ? standardOutput : await Appended.open(options)
  return new Queue(target, options)
}

/** The output: takes one write at a time. */
interface Target {
  write(text: string): Promise<void>
  reopen(): Promise<void>
  close(): Promise<void>
}

class Queue implements LineFile {
  readonly #target: Target
  readonly #maxWaiting: number
  readonly #onDropped: (lines: number, error: Error) => void
  #lines: string[] = []
  /** Characters in `#lines` and in the write under way. */
  #length = 0
  #reopening = false
  #working: Promise<void> | undefined
  #closed = false

  constructor(target: Target, { maxWaiting = 16 * 1024 * 1024, onDropped = () => undefined }: LineFileOptions) {
    this.#target = target
    this.#maxWaiting = maxWaiting
    this.#onDropped = onDropped
  }

  write(line: string): void {
    if (this.#closed || this.#length + line.length + 1 > this.#maxWaiting) {
      this.#onDropped(1, new Error(this.#closed ? 'the file is closed' : 'the queue is full'))
      return
    }
    this.#lines.push(line)
    this.#length += line.length + 1
    this.#work()
  }

  reopen(): void {
    this.#reopening = true
    this.#work()
  }

  async flushed(): Promise<void> {
    while (this.#working !== undefined) await this.#working
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    const late = Promise.withResolvers<undefined>()
    const timer = setTimeout(() => late.resolve(undefined), closeMs)
    try {
      await Promise.race([this.flushed().then(() => this.#target.close()), late.promise])
    } finally {
      clearTimeout(timer)
    }
  }

  #work(): void {
    this.#working ??= this.#drain().finally(() => {
      this.#working = undefined
    })
  }

  async #drain(): Promise<void> {
    // Other lines of the same tick join this write.
    await Promise.resolve()
    while (this.#lines.length > 0 || this.#reopening) {
      if (this.#reopening) {
        this.#reopening = false
        await this.#target.reopen().catch((error: unknown) => this.#onDropped(0, error as Error))
      }
      const batch = this.#take()
      if (batch.length === 0) continue
      const text = `${batch.join('\n')}\n`
      try {
        await this.#target.write(text)
      } catch (error) {
        this.#onDropped(batch.length, error as Error)
      }
      this.#length -= text.length
    }
  }

  #take(): string[] {
    let [count, length] = [0, 0]
    while (count < this.#lines.length && length < maxWriteLength) length += this.#lines[count++]?.length ?? 0
    return this.#lines.splice(0, count)
  }
}

const standardOutput: Target = {
  // The callback comes when the reader has taken the text, so a pipe without a reader fills our bounded queue, not
  // Node's.
  write: (text) =>
    new Promise((resolve, reject) => {
      process.stdout.write(text, (error) => (error ? reject(error) : resolve()))
    }),
  reopen: () => Promise.resolve(),
  close: () => Promise.resolve(),
}

class Appended implements Target {
  readonly #options: LineFileOptions
  #file: FileHandle | undefined
  #size: number
  /** A write failed in the middle of a line: the next write begins a new line. */
  #torn = false

  private constructor(options: LineFileOptions, file: FileHandle, size: number) {
    this.#options = options
    this.#file = file
    this.#size = size
  }

  static async open(options: LineFileOptions): Promise<Appended> {
    const file = await open(options.path, 'a', 0o600)
    return new Appended(options, file, (await file.stat()).size)
  }

  async write(text: string): Promise<void> {
    const bytes = Buffer.from(this.#torn ? `\n${text}` : text)
    const { maxFileBytes = 0 } = this.#options
    if (maxFileBytes > 0 && this.#size > 0 && this.#size + bytes.length > maxFileBytes) await this.#rotate()
    if (this.#file === undefined) await this.reopen()
    this.#torn = true
    await this.#file?.appendFile(bytes)
    this.#torn = false
    this.#size += bytes.length
  }

  async reopen(): Promise<void> {
    const old = this.#file
    this.#file = undefined
    await old?.close()
    this.#file = await open(this.#options.path, 'a', 0o600)
    this.#size = (await this.#file.stat()).size
  }

  async close(): Promise<void> {
    await this.#file?.close()
    this.#file = undefined
  }

  async #rotate(): Promise<void> {
    const { path, maxBackups = 0, maxAgeMs = 0, now = () => new Date() } = this.#options
    const current = now()
    const time = current.toISOString().replace(/[:]/g, '-').replace('Z', '')
    await rename(path, `${withoutExtension(path)}-${time}${extname(path)}`)
    await this.reopen()
    if (maxBackups === 0 && maxAgeMs === 0) return
    const backups = await backupsOf(path)
    const surplus = new Set(maxBackups === 0 ? [] : backups.slice(0, -maxBackups))
    if (maxAgeMs > 0)
      for (const name of backups) if (current.getTime() - renamedAt(name, path) > maxAgeMs) surplus.add(name)
    for (const name of surplus) await rm(join(dirname(path), name), { force: true })
  }
}

function withoutExtension(path: string): string {
  return path.slice(0, path.length - extname(path).length)
}

/** When a renamed file was renamed, by its name; Unix milliseconds. */
function renamedAt(name: string, path: string): number {
  const time = name.slice(`${basename(withoutExtension(path))}-`.length, name.length - extname(path).length)
  return Date.parse(`${time.replace(/T(\d\d)-(\d\d)-/, 'T$1:$2:')}Z`)
}

/** Names of renamed files beside `path`, oldest first. */
async function backupsOf(path: string): Promise<string[]> {
  const prefix = `${basename(withoutExtension(path))}-`
  const suffix = extname(path)
  const isBackup = (name: string): boolean =>
    name.startsWith(prefix) &&
    name.endsWith(suffix) &&
    /^\d{4}-\d\d-\d\dT[\d-]+\.\d+$/.test(name.slice(prefix.length, name.length - suffix.length))
  return (await readdir(dirname(path))).filter(isBackup).sort()
}
