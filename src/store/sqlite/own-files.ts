// Whether the database is still where it was opened. Its files stay open whatever happens to their names: without a look,
// writes to a directory that somebody removed would go on, be acknowledged, and be gone when the process ends.
import { statSync } from 'node:fs'

export class OwnFiles {
  readonly #file: string
  /** The inode of each name when it was first seen. */
  readonly #seen = new Map<string, number>()

  /** @param file of a database that is open; what SQLite keeps beside it is looked at too. */
  constructor(file: string) {
    this.#file = file
    this.areThere()
  }

  /** Two system calls: for each transaction, after its commit and before its answer. */
  areThere(): boolean {
    return this.#isSame(this.#file) && this.#isSame(`${this.#file}-wal`)
  }

  #isSame(path: string): boolean {
    const now = inodeOf(path)
    if (now === 'unknown') return true
    const before = this.#seen.get(path)
    if (before === undefined && now !== undefined) this.#seen.set(path, now)
    return before === undefined || before === now
  }
}

/** Undefined where nothing has this name; `unknown` where we may not look, which says nothing about the file. */
function inodeOf(path: string): number | undefined | 'unknown' {
  try {
    return statSync(path, { throwIfNoEntry: false })?.ino
  } catch {
    return 'unknown'
  }
}
