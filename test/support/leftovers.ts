// What a run has on this machine at this moment, found by looking at the machine and not at the record.

import { existsSync, lstatSync, readdirSync, readlinkSync } from 'node:fs'
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
    ...processesNaming(runDir(runId)),
    ...mountsBelow(runDir(runId)).map((path) => `mount ${path}`),
    ...['/run/netns', '/sys/class/net', '/var/lib/cni/results', ...cgroupHierarchies()].flatMap(named),
    ...logLinks(runDir(runId)),
    ...(existsSync(runDir(runId)) ? [runDir(runId)] : []),
  ]
}

/** By their working folder: containers' own processes have neither mark nor folder, they die with their shim. */
function processesNaming(dir: string): string[] {
  const linked = (path: string): string => {
    try {
      return readlinkSync(path)
    } catch {
      return ''
    }
  }
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry) && linked(`/proc/${entry}/cwd`).startsWith(dir))
    .map((pid) => `process ${pid} in ${dir}`)
}

function logLinks(dir: string): string[] {
  const links = '/var/log/containers'
  return (existsSync(links) ? readdirSync(links) : [])
    .map((name) => join(links, name))
    .filter((file) => lstatSync(file).isSymbolicLink() && readlinkSync(file).startsWith(dir))
}
