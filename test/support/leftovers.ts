// Finds what a run has left on this machine, by searching the machine instead of the run's record.

import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { loopsBelow, mountsBelow, processesMarked } from './resource.ts'
import { runDir, runVariable } from './run-record.ts'
import { cgroupHierarchies } from './system-packages.ts'

/** Names of everything with the run's id; empty when nothing is left. */
export function leftovers(runId: string): string[] {
  const prefix = `kcp-${runId}`
  const named = (dir: string): string[] =>
    (existsSync(dir) ? readdirSync(dir) : []).filter((name) => name.startsWith(prefix)).map((name) => join(dir, name))
  return [
    ...processesMarked([`${runVariable}=${runId}`]).map(({ pid }) => `process ${pid}`),
    ...processesIn(runId),
    ...mountsBelow(runDir(runId)).map((path) => `mount ${path}`),
    ...loopsBelow(runDir(runId)).map((device) => `loop device ${device}`),
    ...['/run/netns', '/sys/class/net', '/var/lib/cni/results', ...cgroupHierarchies()].flatMap(named),
    ...logLinks(runDir(runId)),
    ...cniResults(runDir(runId)),
    ...(existsSync(runDir(runId)) ? [runDir(runId)] : []),
  ]
}

/** Processes whose working directory, root or cgroup belongs to the run: containers carry no mark of ours. */
function processesIn(runId: string): string[] {
  const dir = `${runDir(runId)}/`
  const links = (pid: string): boolean => {
    try {
      if (`${readlinkSync(`/proc/${pid}/cwd`)}/`.startsWith(dir)) return true
      const [mounts, cgroups] = ['mountinfo', 'cgroup'].map((file) => readFileSync(`/proc/${pid}/${file}`, 'utf8'))
      // Its root mount only: every process of the machine sees a node's other mounts.
      const root = mounts?.split('\n').find((line) => line.split(' ')[4] === '/') ?? ''
      return root.includes(dir) || cgroups?.includes(`/kcp-${runId}-`) === true
    } catch {
      return false // the process ended meanwhile
    }
  }
  const pids = readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))
  return pids.filter(links).map((pid) => `process ${pid} in ${dir}`)
}

function logLinks(dir: string): string[] {
  const links = '/var/log/containers'
  return (existsSync(links) ? readdirSync(links) : [])
    .map((name) => join(links, name))
    .filter((file) => lstatSync(file).isSymbolicLink() && readlinkSync(file).startsWith(dir))
}

function cniResults(dir: string): string[] {
  const results = '/var/lib/cni/results'
  return (existsSync(results) ? readdirSync(results) : [])
    .map((name) => join(results, name))
    .filter((file) => readFileSync(file, 'utf8').includes(`"${dir}/`))
}
