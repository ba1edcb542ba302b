// Tracks the free space of the disk below a database. The last bytes are reserved: a deletion is first written to the
// log, and the log must fit into the database, or the disk would stay full.
import { statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'

/** With more free space than this, in bytes, nothing is checked. It is larger than the log ever gets. */
const plentyBytes = 64 * 1024 * 1024
/** Bytes reserved when the database would grow, and when it has free pages of its own from deletions. */
const keptBytes = 1024 * 1024
const keptForReuseBytes = 512 * 1024

export class DiskRoom {
  readonly #database: DatabaseSync
  readonly #file: string

  constructor(database: DatabaseSync, file: string) {
    this.#database = database
    this.#file = file
  }

  /** Whether `bytes` more can be written and deletions still fit afterwards. */
  has(bytes: number): boolean {
    if (this.#free() > plentyBytes) return true
    if (this.#fits(bytes)) return true
    this.shrinkLog()
    return this.#fits(bytes)
  }

  /** Moves the log into the database and frees the log's space when the disk is nearly full. */
  shrinkLog(): void {
    if (this.#free() > plentyBytes) return
    try {
      this.#database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    } catch {
      // There is no space for the move either: the data stays in the log, where it is safe.
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
      // The file system does not report its free space: only a write will show it.
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
