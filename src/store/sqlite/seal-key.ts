// The key that Secrets in the database are sealed with: a file of its own, away from the database, so that a copy of the
// database alone shows none of them.
import { randomBytes } from 'node:crypto'
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { Seal } from '#store/seal.ts'
import { DatabaseRefused } from './database-refused.ts'

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
  // The file has room; the thread has less time.
  return new Seal(key, { compress: false })
}

/** The same, with a new key where there is no file yet: it is on disk, mode 0600, when this returns. */
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
