// Tokens of people who have signed in, in files that only they can read.
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Tokens } from './provider.ts'
import { withHeartbeatLock } from './heartbeat-lock.ts'

/** Where tokens are kept between two commands. */
export interface TokenCache {
  read(): Promise<Tokens | undefined>
  write(tokens: Tokens): Promise<void>
  /** Runs the work while no other process signs in for the same entry. */
  exclusively<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T>
}

/** Keeps nothing. */
export const noCache: TokenCache = {
  read: () => Promise.resolve(undefined),
  write: () => Promise.resolve(),
  exclusively: (work) => work(),
}

/** A file of the folder; everything in `key` that differs makes another entry. */
export function fileCache(folder: string, key: unknown): TokenCache {
  const name = createHash('sha256').update(JSON.stringify(key)).digest('hex')
  const file = join(folder, name)
  const makeFolder = (): Promise<unknown> => mkdir(folder, { recursive: true, mode: 0o700 })
  return {
    async read() {
      try {
        // eslint-disable-next-line no-restricted-properties -- a file of our own; its only number is a time
        const found = JSON.parse(await readFile(file, 'utf8')) as Partial<Tokens>
        const { token, expiresMs, refreshToken } = found
        if (typeof token !== 'string' || typeof expiresMs !== 'number') return undefined
        return { token, expiresMs, ...(typeof refreshToken === 'string' && { refreshToken }) }
      } catch {
        // A file that is missing or damaged is written again.
        return undefined
      }
    },
    async write(tokens) {
      await makeFolder()
      const temporary = `${file}.${randomBytes(6).toString('hex')}`
      try {
        await writeFile(temporary, JSON.stringify(tokens), { mode: 0o600, flag: 'wx' })
        await rename(temporary, file)
      } finally {
        await rm(temporary, { force: true })
      }
    },
    async exclusively(work, signal) {
      await makeFolder()
      return await withHeartbeatLock(`${file}.lock`, work, signal)
    },
  }
}
