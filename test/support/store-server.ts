// A server for the logical clusters of `kcp start` and `kcp apiserver`: an etcd or a PostgreSQL.
import { startEtcd } from './etcd.ts'
import { runCommand } from './command.ts'
import { startPostgres } from './postgres.ts'
import { ensurePrograms } from './programs.ts'

export type StoreServerKind = 'etcd' | 'postgres'

export interface StoreServer extends AsyncDisposable {
  /** For `kcp start` and `kcp apiserver`. */
  readonly flags: readonly string[]
  /** Everything that it holds of kcp, as text. */
  raw(): Promise<string>
  /** Ends it as a crash does; of several members the first. */
  kill(): Promise<void>
  start(): Promise<void>
  /** Of all its processes, as they are now. */
  pids(): readonly number[]
}

interface StoreServerOptions {
  /** Whether it waits for the disk. Default false. */
  readonly durable?: boolean
  /** Members of an etcd. Default 1. */
  readonly members?: number
}

export async function startStoreServer(kind: StoreServerKind, options: StoreServerOptions = {}): Promise<StoreServer> {
  return kind === 'etcd' ? await etcdServer(options) : await postgresServer(options)
}

async function etcdServer(options: StoreServerOptions): Promise<StoreServer> {
  const etcd = await startEtcd(options)
  const { etcdctl } = await ensurePrograms(['etcdctl'], {})
  const [first] = etcd.members
  return {
    flags: ['--store', 'etcd', '--etcd-servers', etcd.urls.join()],
    raw: async () => (await runCommand(etcdctl, [`--endpoints=${etcd.urls[0]}`, 'get', '--prefix', '/kcp/'])).stdout,
    async kill() {
      await first?.kill()
    },
    start: async () => await first?.start(),
    pids: () => etcd.members.map(({ pid }) => pid),
    [Symbol.asyncDispose]: () => etcd[Symbol.asyncDispose](),
  }
}

async function postgresServer({ durable = false }: StoreServerOptions): Promise<StoreServer> {
  const postgres = await startPostgres({ durable })
  const { database, user, passwordFile = '' } = postgres.servers
  return {
    flags: [
      ...['--store', 'postgres', '--postgres-servers', `127.0.0.1:${postgres.port}`, '--postgres-tls', 'off'],
      ...['--postgres-database', database, '--postgres-user', user, '--postgres-password-file', passwordFile],
    ],
    async raw() {
      const rows = await postgres.query("SELECT encode(key, 'escape') || encode(value, 'escape') AS one FROM kcp.log")
      return rows.map(({ one }) => String(one)).join('\n')
    },
    kill: () => postgres.kill(),
    start: () => postgres.process.start(),
    pids: () => [postgres.process.pid, ...postgres.children()],
    [Symbol.asyncDispose]: () => postgres[Symbol.asyncDispose](),
  }
}
