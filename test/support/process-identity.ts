// Identifies a process: a pid alone may belong to another process later.

import { readFileSync } from 'node:fs'
import { waitFor } from './wait-for.ts'

export interface ProcessIdentity {
  pid: number
  /** Clock ticks since boot at which it started (field 22 of /proc/PID/stat). */
  startTicks: string
}

/** Changes with every boot: an identity of another boot is invalid. */
export const bootId = (): string => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()

/** The process that has `pid` now; undefined if there is none, or only a zombie. */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  const stat = readStat(pid)
  return stat === undefined || stat.state === 'Z' || stat.state === 'X'
    ? undefined
    : { pid, startTicks: stat.startTicks }
}

/** Whether exactly that process is alive. */
export function isAlive({ pid, startTicks }: ProcessIdentity): boolean {
  return identifyProcess(pid)?.startTicks === startTicks
}

/** Sends `signal` to exactly that process, never to one that reuses its pid; false when it is gone. */
export function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): boolean {
  if (!isAlive(identity)) return false
  try {
    return process.kill(identity.pid, signal)
  } catch {
    return false // it ended meanwhile
  }
}

/** Kills these processes and resolves when all are gone. */
export async function killProcesses(identities: readonly ProcessIdentity[], deadlineMs = 20_000): Promise<void> {
  for (const identity of identities) signalProcess(identity, 'SIGKILL')
  const gone = (): boolean => !identities.some(isAlive)
  await waitFor(gone, {
    what: `killed processes ${identities.map(({ pid }) => pid).join(', ')} to be gone`,
    deadlineMs,
    intervalMs: 10,
  })
}

function readStat(pid: number): { state: string; startTicks: string } | undefined {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return undefined
  }
  // The second field is the command in parentheses and may contain blanks and parentheses.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const [state, startTicks] = [fields[0], fields[19]]
  return state === undefined || startTicks === undefined ? undefined : { state, startTicks }
}
