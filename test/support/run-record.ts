// What a run has made on this machine, on disk before it is made, so that whoever comes later can undo it.

import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cacheDir } from './cache-dir.ts'
import { bootId, isAlive, killProcesses, type ProcessIdentity } from './process-identity.ts'
import { processesMarked, processesOfCgroup, undo, type Resource } from './resource.ts'

export interface RunRecord {
  /** Six letters and digits; part of every name the run gives. */
  id: string
  /** For people; runs of tests have none. */
  name?: string
  bootId: string
  /** The process the run ends with; absent for clusters a person keeps (`make clusters-up`). */
  owner?: ProcessIdentity
  /** Decides its addresses, see address-plan.ts. */
  slot: number
  createdAt: string
  clusters: { name: string; kubeconfig: string; node: boolean }[]
  resources: Resource[]
}

/** Marks every process of a run, and by inheritance its children. */
export const runVariable = 'KCP_TEST_RUN'
/** Marks the part of the run (a cluster) a process belongs to. */
export const scopeVariable = 'KCP_TEST_SCOPE'

export const runsDir = (): string => join(cacheDir(), 'runs')
export const runDir = (id: string): string => join(runsDir(), id)
/** Held while runs are made, found or swept. */
export const runsLock = (): string => join(runsDir(), '.lock')

/** Written whole, then renamed: a reader never sees half a record. */
export function writeRecord(record: RunRecord): void {
  const file = join(runDir(record.id), 'record.json')
  mkdirSync(runDir(record.id), { recursive: true, mode: 0o700 })
  writeFileSync(`${file}.new`, `${JSON.stringify(record, null, 2)}\n`)
  renameSync(`${file}.new`, file)
}

/** Records of all runs on this machine (of this cache). */
export function readRecords(): RunRecord[] {
  if (!existsSync(runsDir())) return []
  return readdirSync(runsDir())
    .map((id) => join(runDir(id), 'record.json'))
    .filter((file) => existsSync(file))
    .map((file) => JSON.parse(readFileSync(file, 'utf8')) as RunRecord)
}

/** Whether nobody will ever end this run but a sweep. */
export function isAbandoned({ bootId: boot, owner }: RunRecord): boolean {
  return boot !== bootId() || (owner !== undefined && !isAlive(owner))
}

/** Every living process of the run, or of one scope of it: recorded, in its cgroups, or marked by environment. */
export function livingProcesses(record: RunRecord, scope?: string): ProcessIdentity[] {
  if (record.bootId !== bootId()) return []
  const ours = record.resources.filter((resource) => scope === undefined || resource.scope === scope)
  const marks = [`${runVariable}=${record.id}`, ...(scope === undefined ? [] : [`${scopeVariable}=${scope}`])]
  const found = [
    ...ours.filter((resource) => resource.type === 'process').filter(isAlive),
    ...ours.filter((resource) => resource.type === 'cgroup').flatMap(({ name }) => processesOfCgroup(name)),
    ...processesMarked(marks),
  ]
  return [...new Map(found.map(({ pid, startTicks }) => [pid, { pid, startTicks }])).values()]
}

/** Undoes all of the run, or one scope of it, last made first, and tells `forget` of each that is undone. */
export async function undoRecord(
  record: RunRecord,
  { scope, forget }: { scope?: string; forget: (resource: Resource) => void },
): Promise<void> {
  // Twice: between the first look and the kill a shim may have started a container.
  for (let i = 0; i < 2; i++) await killProcesses(livingProcesses(record, scope))
  const ours = record.resources.filter((resource) => scope === undefined || resource.scope === scope)
  for (const resource of ours.reverse()) {
    if (resource.type !== 'process' && !isNeededByOthers(resource, record)) await undo(resource)
    forget(resource)
  }
}

/** Kernel settings are shared: the last run that needs one puts it back. */
function isNeededByOthers(resource: Resource, { id }: RunRecord): boolean {
  return (
    resource.type === 'sysctl' && readRecords().some((other) => other.id !== id && settingsOf(other).has(resource.file))
  )
}

/** Kernel settings a run has changed, with what was there before. */
function settingsOf({ resources }: RunRecord): Map<string, string> {
  const settings = resources.filter((resource) => resource.type === 'sysctl')
  return new Map(settings.map(({ file, before }) => [file, before]))
}

/** What the kernel setting `file` was before any run changed it. */
export function settingBefore(file: string): string {
  const known = readRecords().map((record) => settingsOf(record).get(file))
  return known.find((before) => before !== undefined) ?? readFileSync(file, 'utf8')
}
