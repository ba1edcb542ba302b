// Files in `data` of a directory of `kcp start` that say where its logical clusters are, if they are not there.
import { existsSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ExitError } from '#cli/process/exit-error.ts'
import { placeOf, type ServerStoreSettings } from './server-store.ts'

const marks = { etcd: 'in-etcd', postgres: 'in-postgres' } as const
export const markNames: readonly string[] = Object.values(marks)
/** There while `kcp migrate-store` runs, and after it was killed. */
const migratingName = 'migrating'

/** Throws ExitError while a migration runs or is unfinished. */
export function requireNoMigration(rootDir: string): void {
  if (!isMigrating(rootDir)) return
  const file = join(rootDir, 'data', migratingName)
  throw new ExitError(
    `kcp migrate-store runs for "${rootDir}", or was interrupted: run it again; to go on without it, delete ${file}`,
  )
}

/** Whether a migration runs, or was killed. */
export function isMigrating(rootDir: string): boolean {
  return existsSync(join(rootDir, 'data', migratingName))
}

/** The directory is in migration until the result is disposed of, or for good if the process is killed before. */
export async function beginMigration(rootDir: string): Promise<AsyncDisposable> {
  const file = join(rootDir, 'data', migratingName)
  await writeFile(file, `${process.pid}\n`)
  return { [Symbol.asyncDispose]: () => rm(file, { force: true }) }
}

/**
 * Whether the directory has its data in this place already. Throws ExitError if they are elsewhere, where they would be
 * missed.
 */
export async function isMarked(rootDir: string, settings: ServerStoreSettings): Promise<boolean> {
  const { kind } = settings
  const data = join(rootDir, 'data')
  if (existsSync(join(data, marks[kind === 'etcd' ? 'postgres' : 'etcd'])))
    throw new ExitError(
      `the logical clusters of "${rootDir}" are in ${kind === 'etcd' ? 'PostgreSQL' : 'etcd'}: run kcp migrate-store --back first, and then kcp migrate-store with --store ${kind}`,
    )
  const text = await readFile(join(data, marks[kind]), 'utf8').catch(() => undefined)
  if (text === undefined) return false
  const found = text.trim()
  // Until 2026-11-28, a mark of etcd had the prefix alone.
  if (found === placeOf(settings) || (settings.kind === 'etcd' && found === settings.prefix)) return true
  throw new ExitError(
    `the logical clusters of "${rootDir}" are ${found.startsWith('/') ? `in etcd below ${found}` : found}, not ${placeOf(settings)}`,
  )
}

/** Notes where the data of the directory are. */
export async function mark(rootDir: string, settings: ServerStoreSettings): Promise<void> {
  const data = join(rootDir, 'data')
  await mkdir(data, { recursive: true, mode: 0o700 })
  await rm(join(data, marks[settings.kind === 'etcd' ? 'postgres' : 'etcd']), { force: true })
  await writeFile(join(data, marks[settings.kind]), `${placeOf(settings)}\n`)
}

export async function unmark(rootDir: string, { kind }: ServerStoreSettings): Promise<void> {
  await rm(join(rootDir, 'data', marks[kind]), { force: true })
}
