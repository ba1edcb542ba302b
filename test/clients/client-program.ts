// Builds client programs in other languages once, from their sources and lock files, outside the checkout.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { arch, platform } from 'node:os'
import { join } from 'node:path'
import { withFileLock } from '#test/support/file-lock.ts'
import { cacheDir, repositoryRoot, runCommand, type CommandResult } from '#test/support/index.ts'

export interface ClientProgram {
  /** Prefix of its folder in the cache. */
  readonly name: string
  /** Folder in test/clients. */
  readonly folder: string
  /** Which files of the folder decide whether to rebuild, by relative path; all by default. */
  readonly isSource?: (file: string) => boolean
  /** Builds into `dir`, which is empty, from `source`. */
  readonly build: (dir: string, source: string) => Promise<unknown>
}

/** The folder with the built program. Builds it if it is not cached; concurrent callers build once. */
export async function ensureClientProgram({ name, folder, isSource, build }: ClientProgram): Promise<string> {
  const source = join(repositoryRoot, 'test', 'clients', folder)
  const hash = createHash('sha256').update(`${name} ${platform()} ${arch()}`)
  const files = readdirSync(source, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  for (const path of files.map((entry) => join(entry.parentPath, entry.name).slice(source.length + 1)).sort())
    if (isSource?.(path) ?? true) hash.update(`${path}\0`).update(readFileSync(join(source, path)))
  const dir = join(cacheDir(), 'programs', `${name}-${hash.digest('hex').slice(0, 16)}`)
  const complete = join(dir, 'complete')
  if (existsSync(complete)) return dir
  await withFileLock(join(cacheDir(), 'programs', `.${name}.lock`), async () => {
    if (existsSync(complete)) return
    process.stderr.write(`building client program ${name} ...\n`)
    const started = performance.now()
    rmSync(dir, { recursive: true, force: true })
    mkdirSync(dir, { recursive: true })
    await build(dir, source)
    writeFileSync(complete, '')
    const seconds = (performance.now() - started) / 1000
    process.stderr.write(`building client program ${name}: done in ${seconds.toFixed(1)} s\n`)
  })
  return dir
}

/** Runs a compiler with low priority. Rejects with its output when it fails. */
export function compile(
  command: string,
  args: readonly string[],
  { cwd, env = {} }: { cwd: string; env?: Record<string, string> },
): Promise<CommandResult> {
  return runCommand('nice', ['-n', '10', command, ...args], { cwd, env, timeoutMs: 30 * 60_000 })
}
