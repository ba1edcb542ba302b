// The record of what a run creates on this machine, written to disk before it is created, so that a later run can undo
// it.

import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cacheDir } from './cache-dir.ts'
import { bootId, isAlive, killProcesses, type ProcessIdentity } from './process-identity.ts'
import { processesMarked, processesOfCgroup, undo, type Resource } from './resource.ts'

export interface RunRecord {
  /** Six letters and digits; part of every name the run gives. */
  id: string
  /** Shown to people; runs of tests have none. */
  name?: string
  bootId: string
  /** The process with which the run ends; absent for clusters that a person keeps (`make clusters-up`). */
  owner?: ProcessIdentity
  /** Decides its addresses, see address-plan.ts. */
  slot: number
  createdAt: string
  clusters: { name: string; kubeconfig: string; node: boolean }[]
  resources: Resource[]
}

/** Marks every process of a run, and by inheritance its children. */
export const runVariable = 'KCP_TEST_RUN'
/** Marks the part of the run (a cluster) that a process belongs to. */
export const scopeVariable = 'KCP_TEST_SCOPE'

export const runsDir = (): string => join(cacheDir(), 'runs')
export const runDir = (id: string): string => join(runsDir(), id)
/** Held while runs are created, looked up or swept. */
export const runsLock = (): string => join(runsDir(), '.lock')

/** Writes a temporary file and renames it: a reader never sees an incomplete record. */
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

/** True if only a sweep will ever end this run. */
export function isAbandoned({ bootId: boot, owner }: RunRecord): boolean {
  return boot !== bootId() || (owner !== undefined && !isAlive(owner))
}

/** All living processes of the run, or of one scope: those recorded, in its cgroups, or marked by environment. */
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

/** Undoes the run, or one scope of it, last created first, and calls `forget` for each undone resource. */
export async function undoRecord(
  record: RunRecord,
  { scope, forget }: { scope?: string; forget: (resource: Resource) => void },
): Promise<void> {
  // Twice: between the first search and the kill a shim may have started a container.
  for (let i = 0; i < 2; i++) await killProcesses(livingProcesses(record, scope))
  const ours = record.resources.filter((resource) => scope === undefined || resource.scope === scope)
  for (const resource of ours.reverse()) {
    if (resource.type !== 'process' && !isNeededByOthers(resource, record)) await undo(resource)
    forget(resource)
  }
}

/** Kernel settings are shared: the last run that needs one restores it. */
function isNeededByOthers(resource: Resource, { id }: RunRecord): boolean {
  return (
    resource.type === 'sysctl' && readRecords().some((other) => other.id !== id && settingsOf(other).has(resource.file))
  )
}

/** The kernel settings that a run has changed, with their previous values. */
function settingsOf({ resources }: RunRecord): Map<string, string> {
  const settings = resources.filter((resource) => resource.type === 'sysctl')
  return new Map(settings.map(({ file, before }) => [file, before]))
}

/** The value of the kernel setting `file` before any run changed it. */
export function settingBefore(file: string): string {
  const known = readRecords().map((record) => settingsOf(record).get(file))
  return known.find((before) => before !== undefined) ?? readFileSync(file, 'utf8')
}
