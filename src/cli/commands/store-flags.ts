// Flags for logical clusters in an etcd, named as those of kube-apiserver, or in a PostgreSQL.
import { InvalidArgumentError, Option, type Command } from 'commander'
import { parseCount } from './flags.ts'
import type { EtcdSettings, PostgresSettings, ServerStoreSettings } from '#cli/roles/server-store.ts'
import { ExitError } from '#cli/process/exit-error.ts'

/** The flag values as commander passes them. */
export interface StoreFlags {
  readonly store: string
  readonly etcdServers?: readonly string[]
  readonly etcdPrefix: string
  readonly etcdCafile?: string
  readonly etcdCertfile?: string
  readonly etcdKeyfile?: string
  readonly etcdUser?: string
  readonly etcdPasswordFile?: string
  readonly etcdCompactionInterval: number
  readonly postgresServers?: PostgresSettings['hosts']
  readonly postgresDatabase: string
  readonly postgresSchema: string
  readonly postgresUser: string
  readonly postgresPasswordFile?: string
  readonly postgresTls: string
  readonly postgresCafile?: string
  readonly postgresCertfile?: string
  readonly postgresKeyfile?: string
  readonly postgresHistory: number
}

/** Adds `--store`, `--etcd-*` and `--postgres-*`. `own`: the store without a server of the user's, such as `sqlite`. */
export function withStoreFlags(command: Command, { own, where }: { own: string; where: string }): Command {
  return command
    .addOption(
      new Option('--store <store>', `where logical clusters are stored: ${own} (${where}), an etcd, or a PostgreSQL`)
        .choices([own, 'etcd', 'postgres'])
        .default(own),
    )
    .option(
      '--etcd-servers <urls>',
      'URLs of the members of an etcd, separated by commas; 3.5.8 or newer',
      parseServers,
    )
    .option('--etcd-prefix <prefix>', 'begins all keys in etcd', parsePrefix, '/kcp')
    .option('--etcd-cafile <file>', "PEM file of the authority of etcd's certificates (default: the system's)")
    .option('--etcd-certfile <file>', 'PEM file of a client certificate for etcd')
    .option('--etcd-keyfile <file>', 'PEM file of the key of that certificate')
    .option('--etcd-user <name>', "a user of etcd's own authentication; with --etcd-password-file")
    .option('--etcd-password-file <file>', 'file with the password of that user')
    .option(
      '--etcd-compaction-interval <seconds>',
      'how much history etcd keeps, for watches that resume; older history is dropped; 0: something else drops it',
      parseCount,
      300,
    )
    .option(
      '--postgres-servers <hosts>',
      'servers of a PostgreSQL as HOST:PORT, separated by commas; 16 or newer; the one that is the primary is used',
      parseHosts,
    )
    .option('--postgres-database <name>', 'the database', parseName, 'kcp')
    .option('--postgres-schema <name>', 'the schema with the tables; it is created if it is missing', parseName, 'kcp')
    .option('--postgres-user <name>', 'the user of the database', 'kcp')
    .option('--postgres-password-file <file>', 'file with the password of that user; read for each connection')
    .addOption(
      new Option('--postgres-tls <mode>', 'verify: TLS with a checked certificate and host name; off: no TLS')
        .choices(['verify', 'off'])
        .default('verify'),
    )
    .option(
      '--postgres-cafile <file>',
      "PEM file of the authority of the servers' certificates (default: the system's)",
    )
    .option('--postgres-certfile <file>', 'PEM file of a client certificate for PostgreSQL')
    .option('--postgres-keyfile <file>', 'PEM file of the key of that certificate')
    .option('--postgres-history <seconds>', 'how much history is kept, for watches that resume', parseCount, 300)
}

/** The settings; none with another store. Throws ExitError if flags are missing or do not fit together. */
export function serverStoreOf(flags: StoreFlags): { serverStore?: ServerStoreSettings } {
  const { store, etcdServers, postgresServers } = flags
  if (etcdServers !== undefined && store !== 'etcd')
    throw new ExitError('--etcd-servers is only used with --store etcd')
  if (postgresServers !== undefined && store !== 'postgres')
    throw new ExitError('--postgres-servers is only used with --store postgres')
  if (store === 'etcd') return { serverStore: etcdOf(flags) }
  if (store === 'postgres') return { serverStore: postgresOf(flags) }
  return {}
}

function etcdOf(flags: StoreFlags): EtcdSettings {
  const { etcdServers: urls, etcdPrefix: prefix, etcdCafile, etcdCertfile, etcdKeyfile, etcdUser } = flags
  if (urls === undefined) throw new ExitError('--store etcd needs --etcd-servers')
  if ((etcdCertfile === undefined) !== (etcdKeyfile === undefined))
    throw new ExitError('--etcd-certfile and --etcd-keyfile are used together')
  if ((etcdUser === undefined) !== (flags.etcdPasswordFile === undefined))
    throw new ExitError('--etcd-user and --etcd-password-file are used together')
  return {
    kind: 'etcd',
    urls,
    prefix,
    historyMs: flags.etcdCompactionInterval * 1000,
    ...(etcdCafile !== undefined && { caFile: etcdCafile }),
    ...(etcdCertfile !== undefined && { certFile: etcdCertfile }),
    ...(etcdKeyfile !== undefined && { keyFile: etcdKeyfile }),
    ...(etcdUser !== undefined && { user: { name: etcdUser, passwordFile: flags.etcdPasswordFile ?? '' } }),
  }
}

function postgresOf(flags: StoreFlags): PostgresSettings {
  const { postgresServers: hosts, postgresCafile, postgresCertfile, postgresKeyfile, postgresPasswordFile } = flags
  if (hosts === undefined) throw new ExitError('--store postgres needs --postgres-servers')
  if ((postgresCertfile === undefined) !== (postgresKeyfile === undefined))
    throw new ExitError('--postgres-certfile and --postgres-keyfile are used together')
  if (flags.postgresTls === 'off' && (postgresCafile ?? postgresCertfile) !== undefined)
    throw new ExitError('--postgres-cafile and --postgres-certfile are only used with --postgres-tls verify')
  if (flags.postgresHistory < 1) throw new ExitError('--postgres-history must be 1 or more')
  return {
    kind: 'postgres',
    hosts,
    database: flags.postgresDatabase,
    schema: flags.postgresSchema,
    user: flags.postgresUser,
    tls: flags.postgresTls === 'verify',
    historyMs: flags.postgresHistory * 1000,
    ...(postgresPasswordFile !== undefined && { passwordFile: postgresPasswordFile }),
    ...(postgresCafile !== undefined && { caFile: postgresCafile }),
    ...(postgresCertfile !== undefined && { certFile: postgresCertfile }),
    ...(postgresKeyfile !== undefined && { keyFile: postgresKeyfile }),
  }
}

const defaultPort = 5432

function parseHosts(text: string): PostgresSettings['hosts'] {
  return text.split(',').map((part) => {
    const one = part.trim()
    const url = `postgres://${one}`
    const parsed = /^[^/@?#]+$/.test(one) && URL.canParse(url) ? new URL(url) : undefined
    if (parsed === undefined || parsed.hostname === '')
      throw new InvalidArgumentError(`"${one}" must be a host and port such as db-0.example.com:5432`)
    const host = parsed.hostname.replace(/^\[|\]$/g, '')
    return { host, port: parsed.port === '' ? defaultPort : Number(parsed.port) }
  })
}

function parseName(text: string): string {
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(text) || text.startsWith('pg_'))
    throw new InvalidArgumentError('it must be a name of PostgreSQL in lower case, such as kcp')
  return text
}

function parseServers(text: string): readonly string[] {
  const urls = text.split(',').map((part) => part.trim())
  for (const url of urls) {
    const parsed = URL.canParse(url) ? new URL(url) : undefined
    const isPlain = parsed?.pathname === '/' && parsed.search === '' && parsed.username === ''
    if (parsed === undefined || !['http:', 'https:'].includes(parsed.protocol) || !isPlain)
      throw new InvalidArgumentError(`"${url}" must be a URL such as https://10.0.0.1:2379`)
  }
  const schemes = new Set(urls.map((url) => new URL(url).protocol))
  if (schemes.size > 1) throw new InvalidArgumentError('all must be https, or all http')
  return urls
}

function parsePrefix(text: string): string {
  if (!/^\/[\w./-]{0,200}[\w.-]$/.test(text))
    throw new InvalidArgumentError('it must begin with / and end in another character, such as /kcp')
  return text
}
