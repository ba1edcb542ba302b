// Checks that the database files still have their names. The open files outlive their names: after somebody removed the
// directory, writes would still be acknowledged and be lost when the process ends.
import { statSync } from 'node:fs'

export class OwnFiles {
  readonly #file: string
  /** The inode of each name when first seen. */
  readonly #seen = new Map<string, number>()

  /** @param file of an open database; the files that SQLite keeps beside it are checked too. */
  constructor(file: string) {
    this.#file = file
    this.areThere()
  }

  /** Two system calls per transaction, after its commit and before its answer. */
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

/** Undefined if no file has this name; `unknown` if access is denied, which says nothing about the file. */
function inodeOf(path: string): number | undefined | 'unknown' {
  try {
    return statSync(path, { throwIfNoEntry: false })?.ino
  } catch {
    return 'unknown'
  }
}
