// The key that Secrets in the database are sealed with, and the sealing of older databases.
import { randomBytes } from 'node:crypto'
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { Seal, sealedResource, sealedValue } from '#store/seal.ts'
import type { ObjectKey } from '#store/store.ts'

/** Number of rows sealed at a time when an older database is opened. */
const batchRows = 500

/** Seals the Secrets that a database of an older format holds in the clear. Run this in a transaction. */
export function sealAll(database: DatabaseSync, seal: Seal): void {
  for (const table of ['objects', 'deletions']) {
    const next = database.prepare(
      `SELECT rowid AS id, cluster, resource, namespace, name, value FROM ${table}
       WHERE resource = ? AND rowid > ? ORDER BY rowid LIMIT ${batchRows}`,
    )
    const update = database.prepare(`UPDATE ${table} SET value = ? WHERE rowid = ?`)
    let last = 0
    for (;;) {
      const rows = next.all(sealedResource, last) as unknown as (ObjectKey & { id: number; value: Uint8Array })[]
      for (const row of rows) update.run(sealedValue(seal, row, row.value), row.id)
      if (rows.length < batchRows) break
      last = rows.at(-1)?.id ?? last
    }
  }
  const bytes = 'coalesce((SELECT sum(length(value)) FROM deletions), 0)'
  database.exec(`UPDATE meta SET deletion_bytes = ${bytes}`)
}

/**
 * Size of the key that Secrets in the database are sealed with. It is in a file of its own, away from the database, so
 * that a copy of the database alone shows none of them.
 */
const keyBytes = 32

/** Throws DatabaseRefused where the key of a sealed database is missing. */
export function requireSealKey(file: string | undefined, database: string): void {
  if (file !== undefined && existsSync(file)) return
  throw new DatabaseRefused(
    `Secrets in ${database} are sealed with a key that is missing: ${file === undefined ? 'name its file' : `restore ${file}`}`,
  )
}

/** The seal with the key in this file. Throws DatabaseRefused for a file that holds none. */
export function readSeal(file: string): Seal {
  let key: Buffer
  try {
    key = Buffer.from(readFileSync(file, 'utf8'), 'base64')
  } catch (cause) {
    throw new DatabaseRefused(`cannot read the key in ${file}: ${(cause as Error).message}`, { cause })
  }
  if (key.length !== keyBytes) throw new DatabaseRefused(`${file} holds no key of ${keyBytes} bytes: restore it`)
  // Does not compress: the thread's time is scarcer than the space in the file.
  return new Seal(key, { compress: false })
}

/** Like readSeal, but creates a missing file with a new key; it is on disk with mode 0600 when the function returns. */
export function readOrCreateSeal(file: string): Seal {
  if (!existsSync(file)) createKey(file)
  return readSeal(file)
}

function createKey(file: string): void {
  const fresh = `${file}.${process.pid}`
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    const handle = openSync(fresh, 'w', 0o600)
    writeSync(handle, `${randomBytes(keyBytes).toString('base64')}\n`)
    fsyncSync(handle)
    closeSync(handle)
    renameSync(fresh, file)
    const directory = openSync(dirname(file), 'r')
    fsyncSync(directory)
    closeSync(directory)
  } catch (cause) {
    throw new DatabaseRefused(`cannot write a key to ${file}: ${(cause as Error).message}`, { cause })
  }
}

/** The reason why a database is not opened: a one-line message for the person who started the program. */
export class DatabaseRefused extends Error {}
