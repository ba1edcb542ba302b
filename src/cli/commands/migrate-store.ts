// `kcp migrate-store`: takes all data of a `kcp start` from its file into an etcd or a PostgreSQL, or back. The program
// does not run meanwhile.
import { existsSync } from 'node:fs'
import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { ClusterId, Revision } from '#apimachinery/meta/index.ts'
import { copyStore, isStoreError, type ObjectKey, type Seal, type Store, type Succession } from '#store/index.ts'
import { openSqliteStore, readOrCreateSeal } from '#store/sqlite/index.ts'
import { createLogger, type LogLevel } from '#telemetry/index.ts'
import { hasPki, openPki } from '#virtualapi/index.ts'
import { ExitError, messageOf } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { startProgress } from '#cli/process/progress.ts'
import { openServerStore, placeOf, type ServerStoreSettings } from '#cli/roles/server-store.ts'
import { beginMigration, isMarked, isMigrating, mark, unmark } from '#cli/roles/store-marks.ts'
import { sizeText } from './snapshot-file.ts'
import { serverStoreOf, type StoreFlags } from './store-flags.ts'

interface Flags extends StoreFlags {
  readonly rootDir: string
  readonly back?: boolean
  readonly logLevel: LogLevel
}

interface Migration {
  readonly rootDir: string
  readonly data: string
  readonly server: ServerStoreSettings
  readonly openServer: (options: { readonly succession?: Succession; readonly mustExist?: boolean }) => Promise<Store>
  readonly openFile: (path: string, succession?: Succession) => Promise<Store>
  /** What could not be read so far. */
  readonly problems: readonly string[]
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
  const problems: string[] = []
  const onProblem = (message: string, error: unknown): void => {
    // Of an object that cannot be read; others, such as a broken connection, are mended by the store.
    if (isStoreError(error)) problems.push(`${message}: ${messageOf(error)}`)
    else log.warn(message, { error })
  }
  const migration: Migration = {
    rootDir,
    data: join(rootDir, 'data'),
    server,
    openServer: (options) => openServerStore(server, { authority, seal, onProblem, ...options, log, signal }),
    openFile: (file, succession) =>
      openSqliteStore({ file, mayBeNew: succession !== undefined, sealKeyFile, ...(succession && { succession }) }),
    problems,
    signal,
  }
  try {
    await (back ? intoFile(migration) : intoServer(migration))
  } catch (error) {
    signal.throwIfAborted()
    throw error instanceof ExitError ? error : new ExitError(messageOf(error), { cause: error })
  }
}

async function intoServer(migration: Migration): Promise<void> {
  const { rootDir, data, server, openServer, openFile, signal } = migration
  if (!existsSync(join(data, databaseName))) {
    await finish(migration)
    return
  }
  await using stack = new AsyncDisposableStack()
  {
    // The lock of the database is taken first: a kcp that runs is not to be told that a migration does.
    await using from = await openFile(join(data, databaseName))
    stack.use(await beginMigration(rootDir))
    const revision = await from.revision({ signal })
    await using to = await openServer({ succession: { instanceId: from.instanceId, revision } })
    await copy(migration, from, to)
  }
  const former = await setAside(data)
  await mark(rootDir, server)
  console.log(
    `the data are ${placeOf(server)}: start kcp with --store ${server.kind} and the same flags. The database is kept in ${former}; delete that folder when you no longer need it`,
  )
}

/** Ends a migration that was killed after everything was copied and compared. */
async function finish({ rootDir, data, server, openServer, openFile, signal }: Migration): Promise<void> {
  const former = (await readdir(data)).filter((name) => name.startsWith(formerPrefix)).toSorted()
  const last = former.at(-1)
  const wasMarked = await isMarked(rootDir, server)
  if (last === undefined || (wasMarked && !isMigrating(rootDir)))
    throw new ExitError(`"${data}" has no database: the data are elsewhere already`)
  await using _migration = await beginMigration(rootDir)
  {
    // The place must be the one that this database was copied to.
    await using from = await openFile(join(data, last, databaseName))
    const revision = await from.revision({ signal })
    const succession = { instanceId: from.instanceId, revision }
    await using _to = await openServer({ succession, mustExist: true })
  }
  await mark(rootDir, server)
  console.log(`the data are ${placeOf(server)}`)
}

async function intoFile(migration: Migration): Promise<void> {
  const { rootDir, data, server, openServer, openFile, signal } = migration
  if (existsSync(join(data, databaseName)) && isMigrating(rootDir) && (await isMarked(rootDir, server))) {
    // A run that was killed had put the database in place.
    await using _finished = await beginMigration(rootDir)
    await unmark(rootDir, server)
    console.log(`the data are in ${join(data, databaseName)}: start kcp without --store`)
    return
  }
  if (existsSync(join(data, databaseName)))
    throw new ExitError(`"${data}" has a database already: move it away, or leave out --back`)
  if (!(await isMarked(rootDir, server)))
    throw new ExitError(`the data of "${rootDir}" are not ${placeOf(server)}: it has no mark of that`)
  // A kcp that runs is replaced as the writer of the server; if something starts it again, it ends because of this.
  await using _migration = await beginMigration(rootDir)
  const unfinished = join(data, unfinishedName)
  for (const suffix of fileEnds) await rm(`${unfinished}${suffix}`, { force: true })
  {
    await using from = await openServer({ mustExist: true })
    const left = await from.get(proof, { signal })
    if (left !== undefined) await from.delete(proof, { signal, ifRevision: left.revision })
    const revision = await from.revision({ signal })
    await using unchanged = watchForOthers(from, revision)
    await using to = await openFile(unfinished, { instanceId: from.instanceId, revision })
    await copy(migration, from, to)
    await unchanged.require(signal)
  }
  // Closed stores have no log beside the file. The mark goes last: without it, a database must be there.
  await rename(unfinished, join(data, databaseName))
  await unmark(rootDir, server)
  console.log(
    `the data are in ${join(data, databaseName)}: start kcp without --store. Those ${placeOf(server)} are kept; delete them when you no longer need them`,
  )
}

const proof: ObjectKey = { cluster: 'migration' as ClusterId, resource: 'migrations', namespace: '', name: 'proof' }

/** Notices writes of others since the revision. */
function watchForOthers(
  store: Store,
  since: Revision,
): AsyncDisposable & { readonly require: (signal: AbortSignal) => Promise<void> } {
  const life = new AbortController()
  const told = Promise.withResolvers<boolean>()
  const watching = (async () => {
    for await (const batch of store.watch({ since, signal: life.signal }))
      for (const event of batch) {
        if (event.type === 'progress') continue
        const { cluster } = event.type === 'put' ? event.object.key : event.key
        told.resolve(cluster === proof.cluster)
      }
  })()
  watching.catch((error: unknown) => told.reject(error as Error))
  told.promise.catch(() => undefined)
  return {
    async require(signal) {
      // Succeeds only if nobody has taken the data over since, and comes after every change of others.
      const { revision } = await store.create(proof, Buffer.from('{}'), { signal })
      await store.delete(proof, { signal, ifRevision: revision })
      if (await told.promise) return
      throw new ExitError('the data were written to meanwhile: stop kcp, and run the command again')
    },
    async [Symbol.asyncDispose]() {
      life.abort()
      await watching.catch(() => undefined)
    },
  }
}

async function copy({ problems, signal }: Migration, from: Store, to: Store): Promise<void> {
  const progress = startProgress()
  try {
    const { objects, bytes } = await copyStore(
      { from, to },
      { signal, tell: (copied) => progress.tell(`${copied.objects} objects, ${sizeText(copied.bytes)}`) },
    )
    // Lists leave out objects that cannot be read: they would be lost without a word.
    const [problem] = problems
    if (problem !== undefined) throw new ExitError(`${problem}: repair or delete it, and run the command again`)
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
