// Marks a process so that its successor on the same machine, or in the same pod, can prove that it has ended. Otherwise
// a process that restarts after a crash would wait for its own old Lease to expire.
import { readFileSync, readlinkSync } from 'node:fs'

type Parts = Readonly<Partial<Record<string, string>>>

/** What does not change while this process runs, read once: later, clients may hold every descriptor. */
let unchanging: Parts | undefined

/** A mark such as `pod=UID boot=ID ns=pid:[4026531836] pid=17 start=123456`; a part that cannot be read is left out. */
export function processMark({
  podUid = process.env['POD_UID'],
}: { readonly podUid?: string | undefined } = {}): string {
  unchanging ??= {
    boot: tryRead(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
    ns: tryRead(() => readlinkSync('/proc/self/ns/pid')),
    pid: String(process.pid),
    start: tryRead(() => startOf(process.pid)),
  }
  const parts: Parts = { pod: podUid, ...unchanging }
  return Object.entries(parts)
    .flatMap(([name, value]) => (value === undefined || value === '' ? [] : [`${name}=${value}`]))
    .join(' ')
}

/**
 * True if the process with this mark has certainly ended: it ran in a container of our own pod before ours, or on this
 * machine since the last boot, among the processes that we see, of which none has its pid and start time. False if a
 * part of a mark is missing or a file cannot be read: that proves nothing.
 */
export function hasEnded(mark: string, own: string = processMark()): boolean {
  if (mark === '' || mark === own) return false
  const [theirs, ours] = [partsOf(mark), partsOf(own)]
  const isPlaced = [theirs, ours].every(({ boot, ns }) => boot !== undefined && ns !== undefined)
  if (!isPlaced || theirs['pod'] !== ours['pod']) return false
  const isHere = theirs['boot'] === ours['boot'] && theirs['ns'] === ours['ns']
  // The kubelet starts a container again only after the one before has ended. A process of our own container, which
  // shares our namespace, may be another worker.
  if (!isHere) return theirs['pod'] !== undefined
  const { pid, start } = theirs
  if (pid === undefined || start === undefined || !/^[1-9][0-9]*$/.test(pid)) return false
  if (!isThere(Number(pid))) return true
  const found = tryRead(() => startOf(Number(pid)))
  return found !== undefined && found !== start
}

/** False if the system says that there is no such process, not even one of another user. */
function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return !(error instanceof Error && 'code' in error && error.code === 'ESRCH')
  }
}

/**
 * When the process began, in clock ticks since boot: field 22 of its stat file. Empty for a zombie; throws if there is
 * no such process.
 */
function startOf(pid: number): string {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The name, in parentheses, may contain spaces.
  const [state = '', ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return 'ZX'.includes(state) ? '' : (fields[18] ?? '')
}

function partsOf(mark: string): Parts {
  return Object.fromEntries(
    mark.split(' ').map((part) => [part.slice(0, part.indexOf('=')), part.slice(part.indexOf('=') + 1)]),
  )
}

function tryRead(read: () => string): string | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
