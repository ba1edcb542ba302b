// A lock over all processes of this machine: a file that names its holder.

import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { randomBytes } from 'node:crypto'
import { bootId, identifyProcess, isAlive, type ProcessIdentity } from './process-identity.ts'
import { waitFor } from './wait-for.ts'

interface Holder extends ProcessIdentity {
  bootId: string
  token: string
}

export interface LockOptions {
  signal?: AbortSignal | undefined
  /** Called once when another process holds the lock. */
  onWait?: (pid: number) => void
  /** 30 minutes by default: the holder may be building. */
  deadlineMs?: number
}

/** Runs `work` while holding the lock `file`. The lock of a process that died is taken over. */
export async function withFileLock<T>(
  file: string,
  work: () => Promise<T>,
  { signal, onWait, deadlineMs = 30 * 60_000 }: LockOptions = {},
): Promise<T> {
  const me = identifyProcess(process.pid)
  if (me === undefined) throw new Error(`could not read the identity of our own process ${process.pid}`)
  const holder: Holder = { ...me, bootId: bootId(), token: randomBytes(8).toString('hex') }
  mkdirSync(dirname(file), { recursive: true })
  let reported = false
  const take = (): boolean => {
    if (tryTake(file, holder)) return true
    const other = readHolder(file)
    if (other !== undefined && !reported) {
      reported = true
      onWait?.(other.pid)
    }
    return false
  }
  await waitFor(take, { what: `the lock "${file}"`, deadlineMs, signal, intervalMs: 50 })
  try {
    return await work()
  } finally {
    if (readHolder(file)?.token === holder.token) rmSync(file, { force: true })
  }
}

/** Links a complete file into place: the lock never exists without the name of its holder. */
function tryTake(file: string, holder: Holder): boolean {
  const mine = `${file}.${holder.token}`
  writeFileSync(mine, JSON.stringify(holder))
  try {
    linkSync(mine, file)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    removeIfDead(file, holder.token)
    return false
  } finally {
    rmSync(mine, { force: true })
  }
}

function removeIfDead(file: string, token: string): void {
  const found = readHolder(file)
  if (found === undefined || (found.bootId === bootId() && isAlive(found))) return
  // Moved aside before the second check: a living process may have taken the lock between the read and the removal.
  const aside = `${file}.${token}.dead`
  try {
    renameSync(file, aside)
  } catch {
    return
  }
  const moved = readHolder(aside)
  if (moved !== undefined && moved.token !== found.token) linkSync(aside, file)
  rmSync(aside, { force: true })
}

function readHolder(file: string): Holder | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Holder
  } catch {
    return undefined
  }
}
