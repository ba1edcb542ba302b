// Reads the CPU time and memory of processes and their children from /proc.
import { readFileSync, readdirSync } from 'node:fs'

/** Jiffies per second in /proc; 100 on every Linux that Node runs on. */
const ticksPerSecond = 100

interface Stat {
  readonly pid: number
  readonly parent: number
  readonly ticks: number
}

function statOf(pid: number): Stat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name in parentheses may contain spaces and parentheses.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return { pid, parent: Number(fields[1]), ticks: Number(fields[11]) + Number(fields[12]) }
  } catch {
    return undefined
  }
}

/** User and system CPU seconds of these processes so far. */
export function cpuSeconds(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + (statOf(pid)?.ticks ?? 0), 0) / ticksPerSecond
}

/**
 * Resident memory of these processes, MiB; RssAnon: without the pages of files, which processes of one program share.
 */
export function residentMiB(pids: readonly number[], part: 'VmRSS' | 'RssAnon' = 'VmRSS'): number {
  const pattern = new RegExp(`${part}:\\s+(\\d+)`)
  const kib = pids.map((pid) => Number(pattern.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0))
  return kib.reduce((sum, value) => sum + value, 0) / 1024
}

/** A process and all its descendants, the process first. */
export function withChildren(pid: number): number[] {
  const all = readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? (statOf(Number(name)) ?? []) : []))
  const found = [pid]
  for (const parent of found) found.push(...all.filter((stat) => stat.parent === parent).map((stat) => stat.pid))
  return found
}
