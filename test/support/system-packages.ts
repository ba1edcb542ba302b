// The operating system packages that a real node needs: containerd, runc, CNI plugins, iptables, conntrack.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { runCommand } from './command.ts'
import { cacheDir } from './cache-dir.ts'
import { withFileLock } from './file-lock.ts'

const cniDirs = ['/usr/lib/cni', '/opt/cni/bin']
const programs: Record<string, readonly string[]> = {
  containerd: ['containerd', 'ctr'],
  runc: ['runc'],
  iptables: ['iptables', 'iptables-save', 'iptables-restore'],
  conntrack: ['conntrack'],
  iproute2: ['ip'],
  'util-linux': ['nsenter', 'unshare', 'umount'],
}
const searchPath = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']

export interface SystemPackagesOptions {
  signal?: AbortSignal | undefined
  log?: (line: string) => void
}

const toStandardError = (line: string): void => void process.stderr.write(`${line}\n`)

let response: Promise<string | undefined> | undefined

/**
 * Installs missing packages (as root, on Debian-like systems). Resolves with undefined when real nodes can run here,
 * else with the reason why not. Runs once per process.
 */
export function ensureSystemPackages(options: SystemPackagesOptions = {}): Promise<string | undefined> {
  response ??= nodesImpossible(options)
  return response
}

/** Full path of a system program, found even if the user's PATH lacks the sbin folders. */
export function systemProgram(name: string): string {
  const found = findProgram(name)
  if (found === undefined) throw new Error(`the system has no program "${name}"`)
  return found
}

/** The folder with the CNI plugins. */
export function cniPluginDir(): string {
  const found = cniDirs.find((dir) => existsSync(join(dir, 'ptp')))
  if (found === undefined) throw new Error(`no CNI plugin "ptp" in ${cniDirs.join(' or ')}`)
  return found
}

async function nodesImpossible({ signal, log = toStandardError }: SystemPackagesOptions): Promise<string | undefined> {
  if (process.platform !== 'linux') return `nodes need Linux, this is ${process.platform}`
  if (process.getuid?.() !== 0) return 'nodes need root (network namespaces, mounts, cgroups)'
  const reason = await installMissing(missingForNodes, { signal, log })
  if (reason !== undefined) return reason
  // Root in an unprivileged container may create neither of these.
  const probe = await runCommand('unshare', ['--net', '--mount', 'true'], { expectCode: 'any', signal })
  if (probe.code !== 0) return `this root may not create namespaces: ${probe.stderr.trim()}`
  if (cgroupHierarchies().length === 0) return 'no cgroup hierarchy is mounted at /sys/fs/cgroup'
  return undefined
}

/** Installs packages whose programs are missing; rejects with the reason why not. Keys are packages. */
export async function installPackages(
  wanted: Readonly<Record<string, readonly string[]>>,
  { signal, log = toStandardError }: SystemPackagesOptions = {},
): Promise<void> {
  const reason = await installMissing(() => withoutProgram(wanted), { signal, log })
  if (reason !== undefined) throw new Error(reason)
}

async function installMissing(
  missing: () => readonly string[],
  { signal, log }: { signal: AbortSignal | undefined; log: (line: string) => void },
): Promise<string | undefined> {
  if (missing().length === 0) return undefined
  return withFileLock(join(cacheDir(), '.apt.lock'), () => install(missing, log, signal), { signal })
}

async function install(
  missing: () => readonly string[],
  log: (line: string) => void,
  signal: AbortSignal | undefined,
): Promise<string | undefined> {
  const packages = missing()
  if (packages.length === 0) return undefined
  if (findProgram('apt-get') === undefined) return `missing: ${packages.join(', ')}; and no apt-get to install them`
  log(`installing system packages: ${packages.join(' ')} ...`)
  const options = {
    env: { DEBIAN_FRONTEND: 'noninteractive' },
    timeoutMs: 10 * 60_000,
    expectCode: 'any',
    signal,
  } as const
  const args = ['install', '-y', '-q', '--no-install-recommends', ...packages]
  if ((await runCommand('apt-get', args, options)).code !== 0) {
    await runCommand('apt-get', ['update', '-q'], options)
    const second = await runCommand('apt-get', args, options)
    if (second.code !== 0) return `could not install ${packages.join(', ')}: ${second.stderr.trim().slice(-500)}`
  }
  const left = missing()
  if (left.length > 0) return `installed, but still missing: ${left.join(', ')}`
  log(`installing system packages: done`)
  return undefined
}

function missingForNodes(): string[] {
  const cni = cniDirs.some((dir) => existsSync(join(dir, 'ptp'))) ? [] : ['containernetworking-plugins']
  return [...withoutProgram(programs), ...cni]
}

function withoutProgram(wanted: Readonly<Record<string, readonly string[]>>): string[] {
  const missing = Object.entries(wanted).filter(([, names]) => names.some((name) => findProgram(name) === undefined))
  return missing.map(([name]) => name)
}

function findProgram(name: string): string | undefined {
  const dirs = [...(process.env.PATH ?? '').split(':'), ...searchPath].filter((dir) => dir !== '')
  return dirs.map((dir) => join(dir, name)).find((file) => existsSync(file))
}

/** The directories where cgroups can be created: one per controller (v1) or one for all (v2). */
export function cgroupHierarchies(): string[] {
  return readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' '))
    .filter(([, dir, type]) => (type === 'cgroup' || type === 'cgroup2') && dir?.startsWith('/sys/fs/cgroup') === true)
    .map(([, dir]) => dir ?? '')
}
