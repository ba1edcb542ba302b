// Trees of files of all kinds, and random changes to them, from a seed.
import {
  appendFileSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { closeFd, makeNodeAt, openFlags, openPath, setAttribute } from '#mover/files/libc.ts'

/** Numbers from a seed (mulberry32). */
export class Dice {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit
  }

  pick<T>(from: readonly T[]): T {
    return from[this.below(from.length)] as T
  }

  bytes(length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => this.below(256)))
  }
}

const isRoot = process.geteuid?.() === 0
const slash = Buffer.from('/')
const join = (folder: Buffer, name: Buffer): Buffer => Buffer.concat([folder, slash, name])

export class RandomTree {
  readonly #root: Buffer
  readonly #dice: Dice
  readonly #attributes: readonly string[]

  constructor(root: string, dice: Dice, { hasTrusted = isRoot } = {}) {
    this.#attributes = hasTrusted ? ['user.one', 'user.two', 'trusted.x'] : ['user.one', 'user.two']
    this.#root = Buffer.from(root)
    this.#dice = dice
  }

  /** Makes so many random changes. A change that is not possible is left out. */
  change(times: number): void {
    for (let i = 0; i < times; i++) {
      const change = this.#dice.pick(this.#changes)
      try {
        change()
      } catch (error) {
        if (typeof (error as { code?: unknown }).code !== 'string') throw error
      }
    }
  }

  readonly #changes: readonly (() => void)[] = [
    () => mkdirSync(this.#newPath(), 0o755),
    () => mkdirSync(this.#newPath(), 0o700),
    () => writeFileSync(this.#newPath(), this.#content()),
    () => writeFileSync(this.#newPath(), this.#content()),
    () => writeFileSync(this.#newPath(), ''),
    () => this.#sparse(),
    () => this.#patch(),
    () => this.#patch(),
    () => appendFileSync(this.#any('file'), this.#content()),
    () => truncateSync(this.#any('file'), this.#dice.below(3_000_000)),
    () => writeFileSync(this.#any('file'), this.#content()),
    () =>
      symlinkSync(
        this.#dice.pick([this.#name(), Buffer.from('/etc/passwd'), Buffer.from('../../..')]),
        this.#newPath(),
      ),
    () => linkSync(this.#any('file'), this.#newPath()),
    () => linkSync(this.#any('symlink'), this.#newPath()),
    () => this.#node(constants.S_IFIFO),
    () => this.#node(constants.S_IFSOCK),
    () => isRoot && this.#node(constants.S_IFCHR),
    () => isRoot && this.#node(constants.S_IFBLK),
    () => chmodSync(this.#any('file'), this.#dice.below(0o10000) | 0o400),
    () => chmodSync(this.#any('directory'), this.#dice.below(0o10000) | 0o700),
    () => isRoot && lchownSync(this.#any(), this.#dice.below(70_000), this.#dice.below(70_000)),
    () => this.#times(),
    () => this.#attribute(),
    () => renameSync(this.#any(), this.#newPath()),
    () => this.#delete(),
    () => this.#replace(),
  ]

  #name(): Buffer {
    const odd = [
      Buffer.from('new\nline'),
      Buffer.from([0xff, 0xfe, 0x41]),
      Buffer.from(' -n'),
      Buffer.alloc(255, 'x'),
      Buffer.from('\\x41'),
    ]
    if (this.#dice.below(8) === 0) return this.#dice.pick(odd)
    return Buffer.from(`${this.#dice.pick(['a', 'b', 'c', 'é'])}${this.#dice.below(40)}`)
  }

  #newPath(): Buffer {
    return join(this.#any('directory'), this.#name())
  }

  /** A random entry, found by walking down. */
  #any(kind?: 'file' | 'directory' | 'symlink'): Buffer {
    const all = this.#all().filter((path) => kind === undefined || isKind(path, kind))
    const found = kind === 'directory' ? [this.#root, ...all] : all
    if (found.length === 0) throw Object.assign(new Error('nothing'), { code: 'ENOENT' })
    return this.#dice.pick(found)
  }

  #all(folder = this.#root): Buffer[] {
    return readdirSync(folder, { encoding: 'buffer' })
      .sort((a, b) => a.compare(b))
      .flatMap((name) => {
        const path = join(folder, name)
        return isKind(path, 'directory') ? [path, ...this.#all(path)] : [path]
      })
  }

  #content(): Buffer {
    const size = this.#dice.pick([10, 4096, 131_072, 131_073, 1_048_577, 2_500_000])
    const content = Buffer.alloc(size)
    // Some blocks are zeros.
    for (let at = 0; at < size; at += 65_536)
      if (this.#dice.below(3) > 0) content.fill(this.#dice.bytes(16), at, at + 65_536)
    return content
  }

  #sparse(): void {
    const path = this.#newPath()
    writeFileSync(path, this.#dice.bytes(100))
    truncateSync(path, 5_000_000 + this.#dice.below(1000))
    if (this.#dice.below(2) === 0) appendFileSync(path, 'end')
  }

  #patch(): void {
    const path = this.#any('file')
    const { size } = lstatSync(path)
    const fd = openSync(path, 'r+')
    try {
      writeSync(fd, this.#dice.bytes(20), 0, 20, this.#dice.below(Math.max(1, size)))
    } finally {
      closeSync(fd)
    }
  }

  #node(type: number): void {
    const folder = openPath(this.#any('directory').toString('latin1'), openFlags.directory)
    try {
      makeNodeAt(folder, this.#name(), type | 0o640, { major: 7, minor: this.#dice.below(300) })
    } finally {
      closeFd(folder)
    }
  }

  #times(): void {
    utimesSync(this.#any('file'), this.#dice.below(2 ** 31), this.#dice.below(2 ** 31) - 2 ** 29 + 0.123)
  }

  #attribute(): void {
    const path = this.#any(this.#dice.pick(['file', 'directory'] as const))
    const fd = openPath(path.toString('latin1'), openFlags.path)
    try {
      setAttribute(fd, Buffer.from(this.#dice.pick(this.#attributes)), this.#dice.bytes(this.#dice.below(200)))
    } finally {
      closeFd(fd)
    }
  }

  #delete(): void {
    if (this.#dice.below(3) === 0) rmSync(this.#any(), { recursive: true })
  }

  /** Something else with the same name. */
  #replace(): void {
    const path = this.#any()
    if (isKind(path, 'directory') && this.#dice.below(4) > 0) return
    rmSync(path, { recursive: true })
    if (existsSync(path)) return
    this.#dice.pick([
      () => mkdirSync(path),
      () => writeFileSync(path, this.#content()),
      () => symlinkSync('..', path),
    ])()
  }
}

function isKind(path: Buffer, kind: 'file' | 'directory' | 'symlink'): boolean {
  const stat = lstatSync(path)
  return kind === 'file' ? stat.isFile() : kind === 'directory' ? stat.isDirectory() : stat.isSymbolicLink()
}
