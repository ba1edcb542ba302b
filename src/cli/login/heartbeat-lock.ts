// A lock of several processes: a file that its holder touches. A file that nobody touches any more is of a process that
// ended, and is taken over.
import { randomBytes } from 'node:crypto'
import { link, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { sleep } from '#async/index.ts'

export interface LockTimes {
  /** Milliseconds between two touches. */
  readonly touchMs: number
  /** A file this old, in milliseconds, is taken over. */
  readonly staleMs: number
  /** Milliseconds between two attempts. */
  readonly pollMs: number
}

const usual: LockTimes = { touchMs: 2000, staleMs: 10_000, pollMs: 50 }

/** Runs the work while holding the lock. Rejects with the reason of the signal while it waits. */
export async function withHeartbeatLock<T>(
  file: string,
  work: () => Promise<T>,
  signal: AbortSignal,
  { touchMs, staleMs, pollMs }: LockTimes = usual,
): Promise<T> {
  const token = randomBytes(16).toString('hex')
  while (!(await tryTake(file, token, staleMs))) await sleep(pollMs, signal)
  const touch = (): void => {
    const now = new Date()
    utimes(file, now, now).catch(() => undefined)
  }
  const timer = setInterval(touch, touchMs)
  try {
    return await work()
  } finally {
    clearInterval(timer)
    if ((await holderOf(file)) === token) await rm(file, { force: true })
  }
}

async function tryTake(file: string, token: string, staleMs: number): Promise<boolean> {
  const mine = `${file}.${token}`
  await writeFile(mine, token, { mode: 0o600 })
  try {
    // The file appears with its content, or not at all.
    await link(mine, file)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    await removeStale(file, token, staleMs)
    return false
  } finally {
    await rm(mine, { force: true })
  }
}

async function removeStale(file: string, token: string, staleMs: number): Promise<void> {
  const isStale = async (path: string): Promise<boolean> => {
    const found = await stat(path).catch(() => undefined)
    return found !== undefined && Date.now() - found.mtimeMs > staleMs
  }
  if (!(await isStale(file))) return
  // Moved aside before the second look: another process may have taken the lock in between.
  const aside = `${file}.${token}.stale`
  try {
    await rename(file, aside)
  } catch {
    return
  }
  if (!(await isStale(aside))) await link(aside, file).catch(() => undefined)
  await rm(aside, { force: true })
}

async function holderOf(file: string): Promise<string | undefined> {
  return await readFile(file, 'utf8').catch(() => undefined)
}
