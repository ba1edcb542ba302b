// Moves the database's log into the database, after the transaction that made the log long was answered: the move takes
// as long as several transactions, so no write may wait for it.
import type { DatabaseSync, StatementSync } from 'node:sqlite'

/** Pages of 4 KiB. A longer log is moved here; at four times this length SQLite moves it itself, before it answers. */
export const longLogPages = 4000

export class LogMover {
  readonly #lookAtLog: StatementSync
  readonly #move: StatementSync

  constructor(database: DatabaseSync) {
    this.#lookAtLog = database.prepare('PRAGMA wal_checkpoint(NOOP)')
    this.#move = database.prepare('PRAGMA wal_checkpoint(PASSIVE)')
  }

  /** Call it between transactions only. */
  moveIfLong(): void {
    const { log, checkpointed } = this.#lookAtLog.get() as { log: number; checkpointed: number }
    if (log - checkpointed < longLogPages) return
    try {
      this.#move.get()
    } catch {
      // No space in the database: the data stays in the log, where it is safe.
    }
  }
}
