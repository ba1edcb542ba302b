// Flags for logical clusters in an etcd, named as those of kube-apiserver.
import { InvalidArgumentError, Option, type Command } from 'commander'
import { parseCount } from './flags.ts'
import type { EtcdSettings } from '#cli/roles/etcd-store.ts'
import { ExitError } from '#cli/process/exit-error.ts'

/** The flag values as commander passes them. */
export interface EtcdFlags {
  readonly store: string
  readonly etcdServers?: readonly string[]
  readonly etcdPrefix: string
  readonly etcdCafile?: string
  readonly etcdCertfile?: string
  readonly etcdKeyfile?: string
  readonly etcdUser?: string
  readonly etcdPasswordFile?: string
  readonly etcdCompactionInterval: number
}

/** Adds `--store` and `--etcd-*`. `own`: the store without etcd, such as `sqlite`. */
export function withEtcdFlags(command: Command, { own, where }: { own: string; where: string }): Command {
  return command
    .addOption(
      new Option('--store <store>', `where logical clusters are stored: ${own} (${where}), or etcd`)
        .choices([own, 'etcd'])
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
}

/** The settings; none with another store. Throws ExitError if flags are missing or do not fit together. */
export function etcdOf(flags: EtcdFlags): { etcd?: EtcdSettings } {
  const { etcdServers: urls, etcdPrefix: prefix, etcdCafile, etcdCertfile, etcdKeyfile, etcdUser } = flags
  if (flags.store !== 'etcd') {
    if (urls !== undefined) throw new ExitError('--etcd-servers is only used with --store etcd')
    return {}
  }
  if (urls === undefined) throw new ExitError('--store etcd needs --etcd-servers')
  if ((etcdCertfile === undefined) !== (etcdKeyfile === undefined))
    throw new ExitError('--etcd-certfile and --etcd-keyfile are used together')
  if ((etcdUser === undefined) !== (flags.etcdPasswordFile === undefined))
    throw new ExitError('--etcd-user and --etcd-password-file are used together')
  return {
    etcd: {
      urls,
      prefix,
      historyMs: flags.etcdCompactionInterval * 1000,
      ...(etcdCafile !== undefined && { caFile: etcdCafile }),
      ...(etcdCertfile !== undefined && { certFile: etcdCertfile }),
      ...(etcdKeyfile !== undefined && { keyFile: etcdKeyfile }),
      ...(etcdUser !== undefined && { user: { name: etcdUser, passwordFile: flags.etcdPasswordFile ?? '' } }),
    },
  }
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
