// The resources that a run creates on the machine, as they are in the run's record, and how each is undone. Undoing is
// idempotent: the record is written before the resource is created, so it may not exist.

import {
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { runCommand } from './command.ts'
import { identifyProcess, killProcesses, type ProcessIdentity } from './process-identity.ts'
import { deleteCommand } from './kind/commands.ts'
import type { ContainerEngine } from './kind/engine.ts'
import { cgroupHierarchies } from './system-packages.ts'
import { waitFor } from './wait-for.ts'

export type Resource = { scope: string } & (
  | ({ type: 'process'; name: string } & ProcessIdentity)
  | { type: 'directory'; path: string }
  | { type: 'link'; name: string }
  | { type: 'netns'; name: string }
  | { type: 'route'; destination: string; via: string }
  /** Arguments after `-A CHAIN` or `-D CHAIN`. */
  | { type: 'iptables'; chain: string; rule: string[] }
  | { type: 'cgroup'; name: string }
  /** A kernel setting that one of our programs changes. */
  | { type: 'sysctl'; file: string; before: string }
  /** A cluster of kind; `program` is the path of kind, which edits `kubeconfig`. */
  | { type: 'kind'; engine: ContainerEngine; name: string; program: string; kubeconfig: string }
  /** What containerd, its shims and kubelet leave when killed: mounts below `dir`, sockets, CNI results, log links. */
  | { type: 'containers'; dir: string; cniNetwork: string }
)

/** Undoes one resource. Not for processes, which are killed first, all at once. */
export async function undo(resource: Exclude<Resource, { type: 'process' }>): Promise<void> {
  switch (resource.type) {
    case 'directory':
      await unmountBelow(resource.path)
      rmSync(resource.path, { recursive: true, force: true })
      return
    case 'link':
      if (existsSync(`/sys/class/net/${resource.name}`)) await attempt('ip', ['link', 'del', resource.name])
      return
    case 'netns':
      if (existsSync(`/run/netns/${resource.name}`)) await attempt('ip', ['netns', 'del', resource.name])
      return
    case 'route':
      return attempt('ip', ['route', 'del', resource.destination, 'via', resource.via])
    case 'iptables':
      return attempt('iptables', ['-D', resource.chain, ...resource.rule])
    case 'sysctl':
      if (readOrEmpty(resource.file) !== resource.before) writeFileSync(resource.file, resource.before)
      return
    case 'kind': {
      const { args, env } = deleteCommand(resource, resource.kubeconfig)
      await runCommand(resource.program, args, { ...(env && { env }), expectCode: 'any', timeoutMs: 60_000 })
      return
    }
    case 'cgroup':
      return removeCgroup(resource.name)
    case 'containers':
      return removeContainerTraces(resource.dir, resource.cniNetwork)
  }
}

/** Processes in the cgroup `name` and below: finds containers however their parents ended. */
export function processesOfCgroup(name: string): ProcessIdentity[] {
  const pids = new Set<number>()
  for (const dir of cgroupHierarchies().map((hierarchy) => join(hierarchy, name))) {
    for (const group of existsSync(dir) ? [dir, ...foldersBelow(dir)] : []) {
      for (const line of readOrEmpty(join(group, 'cgroup.procs')).split('\n')) if (line !== '') pids.add(Number(line))
    }
  }
  return [...pids].map(identifyProcess).filter((identity) => identity !== undefined)
}

/** Processes whose environment has all `marks` (`NAME=value`): finds children that no record names, such as shims. */
export function processesMarked(marks: readonly string[]): ProcessIdentity[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .filter((pid) => {
      const environment = readOrEmpty(`/proc/${pid}/environ`).split('\0')
      return marks.every((mark) => environment.includes(mark))
    })
    .map((pid) => identifyProcess(Number(pid)))
    .filter((identity) => identity !== undefined)
}

/** Mount points below `dir`, deepest first. */
export function mountsBelow(dir: string): string[] {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) =>
      (line.split(' ')[4] ?? '').replace(/\\([0-7]{3})/g, (_, o: string) => String.fromCharCode(parseInt(o, 8))),
    )
    .filter((path) => path.startsWith(`${dir}/`))
    .reverse()
}

async function unmountBelow(dir: string): Promise<void> {
  // A device in use goes with its last mount. The kubelet puts devices on devices.
  const loops = loopsBelow(dir)
  for (const device of loops) await attempt('losetup', ['-d', device])
  for (const path of mountsBelow(dir)) await attempt('umount', ['-l', path])
  const left = mountsBelow(dir)
  if (left.length > 0) throw new Error(`could not unmount ${left.join(', ')}`)
}

/** Loop devices of files below `dir`, and of devices that are mounted there. */
export function loopsBelow(dir: string): string[] {
  return readdirSync('/sys/block')
    .filter((name) => readOrEmpty(`/sys/block/${name}/loop/backing_file`).startsWith(`${dir}/`))
    .map((name) => `/dev/${name}`)
}

async function removeCgroup(name: string): Promise<void> {
  await killProcesses(processesOfCgroup(name))
  const removed = (): boolean => {
    for (const dir of cgroupHierarchies().map((hierarchy) => join(hierarchy, name))) {
      for (const group of existsSync(dir) ? [...foldersBelow(dir).reverse(), dir] : []) rmdirSync(group)
    }
    return true
  }
  await waitFor(removed, { what: `cgroup "${name}" to be removed`, deadlineMs: 10_000, intervalMs: 20 })
}

async function removeContainerTraces(dir: string, cniNetwork: string): Promise<void> {
  const tasks = join(dir, 'state', 'io.containerd.runtime.v2.task', 'k8s.io')
  for (const id of listOrEmpty(tasks)) {
    const address = readOrEmpty(join(tasks, id, 'address'))
    if (address.startsWith('unix:///')) rmSync(address.slice('unix://'.length), { force: true })
  }
  await unmountBelow(dir)
  const results = '/var/lib/cni/results'
  for (const file of listOrEmpty(results)) {
    // We do not choose the loopback network's name; its results contain the path of their sandbox.
    const ours = file.startsWith(`${cniNetwork}-`) || readOrEmpty(join(results, file)).includes(`"${dir}/`)
    if (ours) rmSync(join(results, file), { force: true })
  }
  const links = '/var/log/containers'
  for (const file of listOrEmpty(links).map((name) => join(links, name))) {
    if (lstatSync(file).isSymbolicLink() && readlinkSync(file).startsWith(`${dir}/`)) rmSync(file, { force: true })
  }
}

/**
 * For a resource that may already be gone with its namespace or bridge; the caller checks the result where it matters.
 */
async function attempt(command: string, args: readonly string[]): Promise<void> {
  await runCommand(command, args, { expectCode: 'any', timeoutMs: 20_000 })
}

/** The deepest last. Cgroups of containers that end meanwhile are left out. */
function foldersBelow(dir: string): string[] {
  const found = [dir]
  for (const folder of found) found.push(...foldersIn(folder))
  return found.slice(1)
}

function foldersIn(dir: string): string[] {
  try {
    const entries = readdirSync(dir, { withFileTypes: true })
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(dir, name))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

function listOrEmpty(dir: string): string[] {
  return existsSync(dir) ? readdirSync(dir) : []
}

function readOrEmpty(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
