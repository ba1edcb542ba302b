// Node and the shared libraries it needs, from public packages: Node from its npm package, the libraries from Debian's.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Platform } from './platform.ts'
import type { TarEntry } from '#test/support/tar.ts'

/** What Node's official binary is linked against, by Debian package. */
const debianPackages = ['libc6', 'libstdc++6', 'libgcc-s1']
const libraries = [
  'libc.so.6',
  'libm.so.6',
  'libdl.so.2',
  'libpthread.so.0',
  'librt.so.1',
  'libatomic.so.1',
  'libstdc++.so.6',
  'libgcc_s.so.1',
  // Loaded by name when a host name is looked up.
  'libnss_dns.so.2',
  'libnss_files.so.2',
  'libresolv.so.2',
]

export interface RuntimeOptions {
  readonly platform: Platform
  /** Node's version, such as `24.21.0`. */
  readonly nodeVersion: string
  /** Holds what was fetched; kept between builds. */
  readonly cacheDir: string
}

/** The files of the runtime layer. Fetches what the cache does not hold through npm and apt. */
export function runtimeFiles(options: RuntimeOptions): TarEntry[] {
  const { platform } = options
  const root = debianRoot(options)
  const entries: TarEntry[] = [{ path: 'usr/local/bin/node', file: nodeBinary(options), mode: 0o755 }]
  for (const library of libraries) {
    const file = findLibrary(root, platform, library)
    if (file !== undefined) entries.push({ path: `lib/${platform.triplet}/${library}`, file, mode: 0o755 })
  }
  const loader = findLibrary(root, platform, platform.loader.split('/').at(-1) ?? '')
  if (loader === undefined) throw new Error(`the dynamic loader ${platform.loader} is not in Debian's libc6`)
  entries.push({ path: platform.loader, file: loader, mode: 0o755 })
  return entries
}

function nodeBinary({ platform, nodeVersion, cacheDir }: RuntimeOptions): string {
  const prefix = join(cacheDir, `node-${nodeVersion}-${platform.architecture}`)
  const binary = join(prefix, 'node_modules', platform.nodePackage, 'bin/node')
  if (existsSync(binary)) return binary
  mkdirSync(prefix, { recursive: true })
  const spec = `${platform.nodePackage}@${nodeVersion}`
  // --force: npm refuses packages of another architecture.
  const flags = ['--prefix', prefix, '--no-save', '--no-package-lock', '--no-audit', '--no-fund', '--force']
  execFileSync('npm', ['install', ...flags, '--loglevel=error', spec], { stdio: ['ignore', 2, 2] })
  return binary
}

/** A folder with the unpacked Debian packages of the platform. */
function debianRoot({ platform, cacheDir }: RuntimeOptions): string {
  const root = join(cacheDir, `debian-${platform.architecture}`)
  if (existsSync(join(root, '.complete'))) return root
  rmSync(root, { recursive: true, force: true })
  const work = join(root, '.apt')
  for (const dir of ['state/lists/partial', 'cache/archives/partial']) mkdirSync(join(work, dir), { recursive: true })
  // A package database of its own: this machine's architectures stay as they are.
  const settings = [
    `APT::Architecture=${platform.architecture}`,
    `APT::Architectures=${platform.architecture}`,
    `Dir::State=${join(work, 'state')}`,
    `Dir::State::status=/dev/null`,
    `Dir::Cache=${join(work, 'cache')}`,
    `APT::Sandbox::User=root`,
  ].flatMap((setting) => ['-o', setting])
  const apt = (...args: string[]): void => {
    execFileSync('apt-get', [...settings, '-qq', ...args], { cwd: work, stdio: ['ignore', 2, 2] })
  }
  apt('update')
  apt('download', ...debianPackages)
  for (const file of readdirSync(work).filter((name) => name.endsWith('.deb')))
    execFileSync('dpkg-deb', ['-x', join(work, file), root], { stdio: ['ignore', 2, 2] })
  rmSync(work, { recursive: true, force: true })
  execFileSync('touch', [join(root, '.complete')])
  return root
}

function findLibrary(root: string, { triplet }: Platform, name: string): string | undefined {
  for (const dir of [`lib/${triplet}`, `usr/lib/${triplet}`]) {
    const file = join(root, dir, name)
    if (existsSync(file)) return realpathSync(file)
  }
  return undefined
}

/** The version of Node that the checkout pins for itself. */
export function pinnedNodeVersion(repository: string): string {
  const version = /^version=(.+)$/m.exec(readFileSync(join(repository, 'scripts/node.sh'), 'utf8'))?.[1]
  if (version === undefined) throw new Error('scripts/node.sh names no version of Node')
  return version
}
