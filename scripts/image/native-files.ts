// The native packages of the program for a platform. npm installs only those of this machine's platform; the others are
// fetched through npm.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TarEntry } from '#test/support/tar.ts'
import type { Platform } from './platform.ts'

interface Locked {
  readonly version?: string
  readonly optional?: boolean
  readonly dev?: boolean
  readonly os?: readonly string[]
  readonly cpu?: readonly string[]
}

export interface NativeOptions {
  readonly repository: string
  readonly platform: Pick<Platform, 'architecture'>
  /** Holds what was fetched; kept between builds. */
  readonly cacheDir: string
}

/** Files of the packages for musl, which our image does not have. */
const unused = /^musl/

/** Paths of the native packages in package-lock.json, with their versions. */
export function nativePackages({
  repository,
  platform,
}: Omit<NativeOptions, 'cacheDir'>): [path: string, version: string][] {
  const text = readFileSync(join(repository, 'package-lock.json'), 'utf8')
  const lock = JSON.parse(text) as { packages: Readonly<Record<string, Locked>> }
  const cpu = platform.architecture === 'amd64' ? 'x64' : platform.architecture
  return Object.entries(lock.packages)
    .filter(([, { optional, dev, os, cpu: cpus }]) => optional && !dev && os?.includes('linux') && cpus?.includes(cpu))
    .map(([path, { version = '' }]) => [path, version])
}

/** The files of these packages, below /app. Fetches what is not installed here. */
export function nativeFiles(options: NativeOptions): TarEntry[] {
  return nativePackages(options).flatMap(([path, version]) =>
    filesBelow(installedAt(options, path, version), join('app', path)),
  )
}

function installedAt({ repository, cacheDir }: NativeOptions, path: string, version: string): string {
  const here = join(repository, path)
  if (existsSync(here)) return here
  const name = path.replace(/^.*node_modules\//, '')
  const prefix = join(cacheDir, `${name.replaceAll('/', '-')}-${version}`)
  const fetched = join(prefix, 'node_modules', name)
  if (existsSync(fetched)) return fetched
  mkdirSync(prefix, { recursive: true })
  // --force: npm refuses packages of another architecture.
  const flags = [
    '--prefix',
    prefix,
    '--no-save',
    '--no-package-lock',
    '--ignore-scripts',
    '--force',
    '--loglevel=error',
  ]
  execFileSync('npm', ['install', ...flags, `${name}@${version}`], { stdio: ['ignore', 2, 2] })
  return fetched
}

function filesBelow(folder: string, path: string): TarEntry[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => !unused.test(name))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const [file, at] = [join(folder, entry.name), join(path, entry.name)]
      return entry.isDirectory() ? filesBelow(file, at) : [{ path: at, file, mode: 0o644 }]
    })
}
