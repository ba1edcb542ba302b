// What a run has on this machine at this moment, found by looking at the machine and not at the record.

import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { mountsBelow, processesMarked } from './resource.ts'
import { runDir, runVariable } from './run-record.ts'
import { cgroupHierarchies } from './system-packages.ts'

/** Names of everything that carries the run's id; empty when it left nothing. */
export function leftovers(runId: string): string[] {
  const prefix = `kcp-${runId}`
  const named = (dir: string): string[] =>
    (existsSync(dir) ? readdirSync(dir) : []).filter((name) => name.startsWith(prefix)).map((name) => join(dir, name))
  return [
    ...processesMarked([`${runVariable}=${runId}`]).map(({ pid }) => `process ${pid}`),
    ...processesIn(runId),
    ...mountsBelow(runDir(runId)).map((path) => `mount ${path}`),
    ...['/run/netns', '/sys/class/net', '/var/lib/cni/results', ...cgroupHierarchies()].flatMap(named),
    ...logLinks(runDir(runId)),
    ...cniResults(runDir(runId)),
    ...(existsSync(runDir(runId)) ? [runDir(runId)] : []),
  ]
}

/** By what they work in: a folder or a root of the run (containers carry no mark of ours), or a cgroup of it. */
function processesIn(runId: string): string[] {
  const dir = `${runDir(runId)}/`
  const links = (pid: string): boolean => {
    try {
      if (`${readlinkSync(`/proc/${pid}/cwd`)}/`.startsWith(dir)) return true
      const [mounts, cgroups] = ['mountinfo', 'cgroup'].map((file) => readFileSync(`/proc/${pid}/${file}`, 'utf8'))
      // Its own root, not any mount it sees: every process of the machine sees a node's mounts.
      const root = mounts?.split('\n').find((line) => line.split(' ')[4] === '/') ?? ''
      return root.includes(dir) || cgroups?.includes(`/kcp-${runId}-`) === true
    } catch {
      return false // it ended
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
