// Moves what is in the database's log into the database, after the transaction that made the log long was answered: the
// move takes as long as several transactions, and nobody's write is among what it does.
import type { DatabaseSync, StatementSync } from 'node:sqlite'

/** Pages of 4 KiB. A longer log is moved; SQLite does it by itself, before the answer, where that fails four times over. */
export const longLogPages = 4000

export class LogMover {
  readonly #lookAtLog: StatementSync
  readonly #move: StatementSync

  constructor(database: DatabaseSync) {
    this.#lookAtLog = database.prepare('PRAGMA wal_checkpoint(NOOP)')
    this.#move = database.prepare('PRAGMA wal_checkpoint(PASSIVE)')
  }

  /** Between transactions only. */
  moveIfLong(): void {
    const { log, checkpointed } = this.#lookAtLog.get() as { log: number; checkpointed: number }
    if (log - checkpointed < longLogPages) return
    try {
      this.#move.get()
    } catch {
      // No room in the database: it stays in the log, where it is safe.
    }
  }
}
