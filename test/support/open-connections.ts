// Counts the TCP connections of a process to an address, from /proc.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

const established = '01'

/** Those to this IPv4 address and port. */
export function connectionsTo(pid: number, address: string, port: number): number {
  const remote = `${hex(address.split('.').toReversed().map(Number), 2)}:${hex([port], 4)}`
  const own = socketsOf(pid)
  const rows = readFileSync(`/proc/${pid}/net/tcp`, 'utf8').trim().split('\n').slice(1)
  return rows
    .map((row) => row.trim().split(/\s+/))
    .filter(([, , to, state, , , , , , inode = '']) => to === remote && state === established && own.has(inode)).length
}

const hex = (numbers: readonly number[], digits: number): string =>
  numbers.map((number) => number.toString(16).toUpperCase().padStart(digits, '0')).join('')

/** The inodes of its sockets. */
function socketsOf(pid: number): ReadonlySet<string> {
  const inodes = new Set<string>()
  for (const file of readdirSync(`/proc/${pid}/fd`))
    try {
      const [, inode] = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${file}`)) ?? []
      if (inode !== undefined) inodes.add(inode)
    } catch {
      // Closed since the directory was read.
    }
  return inodes
}
