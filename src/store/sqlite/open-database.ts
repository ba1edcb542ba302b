// Opens the file after checking that it is ours, has a known format and is used by no other process. Nothing is changed
// before all three checks pass.
import { randomUUID } from 'node:crypto'
import { closeSync, mkdirSync, openSync, readFileSync, readSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import type { Seal } from '#store/seal.ts'
import type { Succession } from '#store/store.ts'
import { DatabaseRefused, readOrCreateSeal, readSeal, requireSealKey, sealAll } from './sealed-values.ts'

/** Formats of the tables below, kept as the file's user_version. A `sealed` database has sealed values of Secrets. */
const formats = { plain: 1, sealed: 2 } as const
const formatVersion = formats.sealed

/** "kcp1" in the file's header, which distinguishes our databases from others. */
const applicationId = 0x6b637031
const sqliteFull = 13

export interface OpenDatabase {
  readonly database: DatabaseSync
  readonly instanceId: string
  /** The seal of a sealed database; undefined for a plain one. */
  readonly seal: Seal | undefined
  close(): void
}

// The tables have rowids: twice the creates per second and a third of the disk of a table clustered by key (values of
// 600-1,400 bytes do not fit into the key's tree), but loading a logical cluster from memory takes 1.4 times as long.
const schema = `
CREATE TABLE objects (
  cluster TEXT NOT NULL,
  resource TEXT NOT NULL,
  namespace TEXT NOT NULL,
  name TEXT NOT NULL,
  revision INTEGER NOT NULL,
  create_revision INTEGER NOT NULL,
  value BLOB NOT NULL,
  PRIMARY KEY (cluster, resource, namespace, name)
) STRICT;
CREATE INDEX objects_by_revision ON objects (cluster, revision);
-- The last state of what was deleted, so that a watch can resume over a restart. Bounded; see meta.floor.
CREATE TABLE deletions (
  revision INTEGER PRIMARY KEY,
  cluster TEXT NOT NULL,
  resource TEXT NOT NULL,
  namespace TEXT NOT NULL,
  name TEXT NOT NULL,
  last_revision INTEGER NOT NULL,
  create_revision INTEGER NOT NULL,
  value BLOB NOT NULL
) STRICT;
CREATE INDEX deletions_by_cluster ON deletions (cluster, revision);
-- One row. floor: deletions up to this revision are forgotten.
CREATE TABLE meta (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  instance_id TEXT NOT NULL,
  revision INTEGER NOT NULL,
  floor INTEGER NOT NULL,
  deletions INTEGER NOT NULL,
  deletion_bytes INTEGER NOT NULL
) STRICT;
`

interface DatabaseLimits {
  /** Size limit of the file in bytes; 0 if only the disk limits it. */
  readonly maxFileBytes: number
  /**
   * False if data existed before: an empty file then means that data was lost, and must not be replaced by a new
   * database.
   */
  readonly mayBeNew: boolean
  /** File of the key that seals Secrets; created with the database. Absent: Secrets are not sealed. */
  readonly sealKeyFile?: string
  /** False: a commit does not wait for the disk. */
  readonly isDurable: boolean
  /** Absent: a new database has an id of its own. */
  readonly succession?: Succession
}

/** Opens or makes the database. Throws DatabaseRefused with one line for people. */
export function openDatabase(file: string, limits: DatabaseLimits): OpenDatabase {
  const { maxFileBytes, mayBeNew, sealKeyFile, isDurable, succession } = limits
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  // Reads the header before SQLite sees the file: opening a database may write beside it, and for an empty file it
  // removes the log, which may hold all the data.
  const header = readHeader(file)
  if (header === undefined && !mayBeNew) throw lost(file)
  refuseForeign(file, header ?? { version: 0, applicationId: 0 })
  if (header?.version === formats.sealed) requireSealKey(sealKeyFile, file)
  let database: DatabaseSync
  try {
    // Readable by its owner only, as are the files that SQLite creates beside it: they hold Secrets.
    closeSync(openSync(file, 'a', 0o600))
    database = new DatabaseSync(file, { timeout: 0 })
  } catch (error) {
    throw new DatabaseRefused(`cannot open ${file}: ${(error as Error).message}`, { cause: error })
  }
  try {
    // EXCLUSIVE keeps the lock until close; the kernel releases it however the process dies.
    database.exec('PRAGMA locking_mode = EXCLUSIVE')
    database.exec('BEGIN EXCLUSIVE')
    database.exec('ROLLBACK')
    const version = pragma(database, 'user_version')
    refuseForeign(file, { version, applicationId: pragma(database, 'application_id') })
    if (version === 0 && Number(database.prepare('SELECT count(*) AS n FROM sqlite_master').get()?.['n']) > 0)
      throw new DatabaseRefused(`${file} is not a database of kcp`)
    if (version === 0 && !mayBeNew) throw lost(file)
    database.exec('PRAGMA journal_mode = WAL')
    database.exec(`PRAGMA synchronous = ${isDurable ? 'FULL' : 'OFF'}`)
    database.exec('PRAGMA temp_store = MEMORY')
    database.exec('PRAGMA cache_size = -16384')
    database.exec(`PRAGMA wal_autocheckpoint = ${4 * longLogPages}`)
    database.exec('PRAGMA journal_size_limit = 33554432')
    if (version === 0) create(database, succession)
    if (maxFileBytes > 0) {
      database.exec(`PRAGMA max_page_count = ${Math.ceil(maxFileBytes / pragma(database, 'page_size'))}`)
    }
    const seal = openSeal(database, file, sealKeyFile)
    if (seal !== undefined && version === formats.plain) removeTraces(database)
    const row = database.prepare('SELECT instance_id AS id FROM meta').get() as { id: string } | undefined
    if (row === undefined) throw new DatabaseRefused(`${file} is damaged: its own row is gone; restore the file`)
    // The pid file serves only the error message of a second process: SQLite holds the lock.
    const pidFile = `${file}.pid`
    writeFileSync(pidFile, `${process.pid}\n`)
    return {
      database,
      instanceId: row.id,
      seal,
      close: () => {
        rmSync(pidFile, { force: true })
        database.close()
      },
    }
  } catch (error) {
    database.close()
    throw refusal(file, error)
  }
}

interface Header {
  readonly version: number
  readonly applicationId: number
}

/** The header of the database file; undefined if the file is missing or empty. */
function readHeader(file: string): Header | undefined {
  const header = readStart(file, 100)
  if (header.length === 0) return undefined
  if (header.length < 100 || header.toString('latin1', 0, 15) !== 'SQLite format 3') {
    throw new DatabaseRefused(`${file} is not a database of kcp`)
  }
  return { version: header.readUInt32BE(60), applicationId: header.readUInt32BE(68) }
}

function readStart(file: string, bytes: number): Buffer {
  let handle: number | undefined
  try {
    handle = openSync(file, 'r')
    const start = Buffer.alloc(bytes)
    return start.subarray(0, readSync(handle, start, 0, bytes, 0))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0)
    throw new DatabaseRefused(`cannot read ${file}: ${(error as Error).message}`, { cause: error })
  } finally {
    if (handle !== undefined) closeSync(handle)
  }
}

function lost(file: string): DatabaseRefused {
  return new DatabaseRefused(
    `${file} has no data, though other files of this directory say that there was some: restore it with its -wal file, or choose a new directory`,
  )
}

function refuseForeign(file: string, header: Header): void {
  if (header.version > formatVersion && header.applicationId === applicationId) {
    throw new DatabaseRefused(
      `${file} has format ${header.version}, this program knows up to ${formatVersion}: it was written by a newer kcp`,
    )
  }
  if (header.applicationId !== applicationId && (header.applicationId !== 0 || header.version !== 0)) {
    throw new DatabaseRefused(`${file} is not a database of kcp`)
  }
}

function create(database: DatabaseSync, succession: Succession | undefined): void {
  // Revisions begin above 1: objects of the base layer show 1, and no live object shows 0.
  const { instanceId, revision } = succession ?? { instanceId: randomUUID(), revision: 1 }
  const floor = succession === undefined ? 0 : revision
  database.exec('BEGIN EXCLUSIVE')
  database.exec(schema)
  database.prepare('INSERT INTO meta VALUES (1, ?, ?, ?, 0, 0)').run(instanceId, revision, floor)
  database.exec(`PRAGMA application_id = ${applicationId}`)
  database.exec(`PRAGMA user_version = ${formats.plain}`)
  database.exec('COMMIT')
}

/**
 * The seal of a sealed database. A plain database becomes sealed if there is a key file; else the result is undefined.
 */
function openSeal(database: DatabaseSync, file: string, keyFile: string | undefined): Seal | undefined {
  if (pragma(database, 'user_version') === formats.sealed) {
    requireSealKey(keyFile, file)
    const seal = readSeal(keyFile as string)
    const { id } = database.prepare('SELECT seal_key_id AS id FROM meta').get() as { id: string }
    if (id === seal.keyId) return seal
    throw new DatabaseRefused(`${keyFile} is not the key that Secrets in ${file} are sealed with: restore that one`)
  }
  if (keyFile === undefined) return undefined
  const seal = readOrCreateSeal(keyFile)
  database.exec('BEGIN EXCLUSIVE')
  database.exec("ALTER TABLE meta ADD COLUMN seal_key_id TEXT NOT NULL DEFAULT ''")
  database.prepare('UPDATE meta SET seal_key_id = ?').run(seal.keyId)
  sealAll(database, seal)
  database.exec(`PRAGMA user_version = ${formats.sealed}`)
  database.exec('COMMIT')
  return seal
}

/** Removes earlier states of Secrets, which remain in unused pages and in the log. */
function removeTraces(database: DatabaseSync): void {
  try {
    database.exec('VACUUM')
  } catch (error) {
    // Without space for a copy of the file, the unused pages keep these states until they are used again.
    if (((error as { errcode?: number }).errcode ?? 0) !== sqliteFull) throw error
  }
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
}

function pragma(database: DatabaseSync, name: string): number {
  return Number(Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0])
}

function refusal(file: string, error: unknown): Error {
  if (error instanceof DatabaseRefused) return error
  const { errcode, message } = error as { errcode?: number; message: string }
  const primary = (errcode ?? 0) & 0xff
  if (primary === 5 || primary === 6) return new DatabaseRefused(`${file} is in use by ${user(file)}`, { cause: error })
  if (primary === 26) return new DatabaseRefused(`${file} is not a database of kcp`, { cause: error })
  return new DatabaseRefused(`cannot open ${file}: ${message}`, { cause: error })
}

function user(file: string): string {
  try {
    return `process ${readFileSync(`${file}.pid`, 'utf8').trim()}`
  } catch {
    return 'another process'
  }
}

/**
 * Checks that the database files still have their names. The open files outlive their names: after the directory was
 * removed, writes would still be acknowledged and be lost when the process ends.
 */
export class OwnFiles {
  readonly #file: string
  /** The inode of each name when first seen. */
  readonly #seen = new Map<string, number>()

  /** @param file of an open database; the files that SQLite keeps beside it are checked too. */
  constructor(file: string) {
    this.#file = file
    this.areThere()
  }

  /**
   * Whether the files still have their names: two system calls per transaction, between its commit and its response.
   */
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

/**
 * The inode of a file; undefined if no file has this name; `unknown` if access is denied, which says nothing about the
 * file.
 */
function inodeOf(path: string): number | undefined | 'unknown' {
  try {
    return statSync(path, { throwIfNoEntry: false })?.ino
  } catch {
    return 'unknown'
  }
}

/**
 * Length of the log, in pages of 4 KiB, above which LogMover moves it. At four times this length SQLite itself moves
 * the log, within a commit.
 */
const longLogPages = 4000

/**
 * Moves the database's log into the database, after the response to the transaction that made the log long: the move
 * takes as long as several transactions, so no write may wait for it.
 */
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
