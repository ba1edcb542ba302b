// How much the disk below a database may still take. The last bytes are kept: a deletion is written too, in the database's
// log, and what is in the log must find a place in the database, or neither would ever end.
import { statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'

/** With more than this free nothing is looked at, bytes: as much as the log ever holds, and more. */
const plentyBytes = 64 * 1024 * 1024
/** Kept where the database would grow, and where it has room of its own from deletions, bytes. */
const keptBytes = 1024 * 1024
const keptForReuseBytes = 512 * 1024

export class DiskRoom {
  readonly #database: DatabaseSync
  readonly #file: string

  constructor(database: DatabaseSync, file: string) {
    this.#database = database
    this.#file = file
  }

  /** Whether `bytes` more can be written, deletions still after them. */
  has(bytes: number): boolean {
    if (this.#free() > plentyBytes) return true
    if (this.#fits(bytes)) return true
    this.shrinkLog()
    return this.#fits(bytes)
  }

  /** Moves what is in the log into the database and gives the log's room back, where the disk is nearly full. */
  shrinkLog(): void {
    if (this.#free() > plentyBytes) return
    try {
      this.#database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    } catch {
      // No room for that either: it stays in the log, where it is safe.
    }
  }

  #fits(bytes: number): boolean {
    const reusable = this.#pragma('freelist_count') * this.#pragma('page_size')
    const growth = Math.max(0, this.#logBytes() + bytes - reusable)
    return this.#free() >= bytes + growth + (growth === 0 ? keptForReuseBytes : keptBytes)
  }

  #free(): number {
    try {
      const { bavail, bsize } = statfsSync(dirname(this.#file))
      return bavail * bsize
    } catch {
      // A file system that does not tell is asked by writing to it.
      return Infinity
    }
  }

  #logBytes(): number {
    return statSync(`${this.#file}-wal`, { throwIfNoEntry: false })?.size ?? 0
  }

  #pragma(name: string): number {
    return Number(Object.values(this.#database.prepare(`PRAGMA ${name}`).get() ?? {})[0])
  }
}
