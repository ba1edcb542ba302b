// `kcp migrate-store`: takes all data of a `kcp start` from its file into an etcd or a PostgreSQL, or back. The program
// does not run meanwhile.
import { existsSync } from 'node:fs'
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { copyStore, type Seal, type Store, type Succession } from '#store/index.ts'
import { openSqliteStore, readOrCreateSeal } from '#store/sqlite/index.ts'
import { createLogger, type LogLevel } from '#telemetry/index.ts'
import { hasPki, openPki } from '#virtualapi/index.ts'
import { ExitError, messageOf } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { startProgress } from '#cli/process/progress.ts'
import { storeMarks } from '#cli/roles/embedded.ts'
import { openServerStore, placeOf, type ServerStoreSettings } from '#cli/roles/server-store.ts'
import { sizeText } from './snapshot-file.ts'
import { serverStoreOf, type StoreFlags } from './store-flags.ts'

interface Flags extends StoreFlags {
  readonly rootDir: string
  readonly back?: boolean
  readonly logLevel: LogLevel
}

interface Migration {
  readonly data: string
  readonly server: ServerStoreSettings
  readonly openServer: (succession?: Succession) => Promise<Store>
  readonly openFile: (name: string, succession?: Succession) => Promise<Store>
  readonly signal: AbortSignal
}

const databaseName = 'kcp.db'
/** The database while it is filled. */
const unfinishedName = 'unfinished.db'

/** Runs the command. */
export async function run(flags: Flags): Promise<void> {
  const signal = processSignal()
  const { rootDir, back = false } = flags
  const { serverStore: server } = serverStoreOf(flags)
  if (server === undefined) throw new ExitError('say --store etcd or --store postgres, and how it is reached')
  const sealKeyFile = join(rootDir, 'seal.key')
  if (!hasPki(rootDir) || !existsSync(sealKeyFile))
    throw new ExitError(`"${rootDir}" has no keys of an installation: it must be the directory of kcp start`)
  const log = createLogger({ level: flags.logLevel })
  const { clientCa: authority } = await openPki(rootDir)
  const seal: Seal = readOrCreateSeal(sealKeyFile)
  const data = join(rootDir, 'data')
  const migration: Migration = {
    data,
    server,
    openServer: (succession) =>
      openServerStore(server, { authority, seal, ...(succession && { succession }), log, signal }),
    openFile: (name, succession) =>
      openSqliteStore({
        file: join(data, name),
        mayBeNew: succession !== undefined,
        sealKeyFile,
        ...(succession && { succession }),
      }),
    signal,
  }
  try {
    await (back ? intoFile(migration) : intoServer(migration))
  } catch (error) {
    signal.throwIfAborted()
    throw error instanceof ExitError ? error : new ExitError(messageOf(error), { cause: error })
  }
}

async function intoServer({ data, server, openServer, openFile, signal }: Migration): Promise<void> {
  const mark = join(data, storeMarks[server.kind])
  if (!existsSync(join(data, databaseName))) {
    const entries = await readdir(data)
    const isElsewhere = Object.values(storeMarks).some((name) => entries.includes(name))
    if (isElsewhere || !entries.some((name) => name.startsWith(formerPrefix)))
      throw new ExitError(`"${data}" has no database: the data are elsewhere already`)
    // A run that was killed had copied and compared everything.
    await writeFile(mark, `${placeOf(server)}\n`)
    console.log(`the data are ${placeOf(server)}`)
    return
  }
  {
    await using from = await openFile(databaseName)
    const revision = await from.revision({ signal })
    await using to = await openServer({ instanceId: from.instanceId, revision })
    await copy(from, to, signal)
  }
  const former = await setAside(data)
  await writeFile(mark, `${placeOf(server)}\n`)
  console.log(
    `the data are ${placeOf(server)}: start kcp with --store ${server.kind} and the same flags. The database is kept in ${former}; delete that folder when you no longer need it`,
  )
}

async function intoFile({ data, server, openServer, openFile, signal }: Migration): Promise<void> {
  if (existsSync(join(data, databaseName)))
    throw new ExitError(`"${data}" has a database already: move it away, or leave out --back`)
  for (const end of fileEnds) await rm(join(data, `${unfinishedName}${end}`), { force: true })
  {
    await using from = await openServer()
    const revision = await from.revision({ signal })
    await using to = await openFile(unfinishedName, { instanceId: from.instanceId, revision })
    await copy(from, to, signal)
  }
  await rm(join(data, storeMarks[server.kind]), { force: true })
  // Closed stores have no log beside the file.
  await rename(join(data, unfinishedName), join(data, databaseName))
  console.log(
    `the data are in ${join(data, databaseName)}: start kcp without --store. Those ${placeOf(server)} are kept; delete them when you no longer need them`,
  )
}

async function copy(from: Store, to: Store, signal: AbortSignal): Promise<void> {
  const progress = startProgress()
  try {
    const { objects, bytes } = await copyStore(
      { from, to },
      { signal, tell: (copied) => progress.tell(`${copied.objects} objects, ${sizeText(copied.bytes)}`) },
    )
    progress[Symbol.dispose]()
    console.log(`${objects} objects, ${sizeText(bytes)}, are copied and compared`)
  } finally {
    progress[Symbol.dispose]()
  }
}

const formerPrefix = 'before-migration-'
const fileEnds = ['', '-wal', '-shm', '.pid']

/** Moves the database into a folder of its own. Returns its path. */
async function setAside(data: string): Promise<string> {
  const folder = join(data, `${formerPrefix}${new Date().toISOString().replaceAll(':', '-')}`)
  await mkdir(folder, { mode: 0o700 })
  // The log first: a database without its log is whole after a close, a log without its database is not.
  for (const end of fileEnds.toReversed()) {
    const file = join(data, `${databaseName}${end}`)
    if (existsSync(file)) await rename(file, join(folder, `${databaseName}${end}`))
  }
  return folder
}
