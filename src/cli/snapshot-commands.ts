// The commands about snapshots and their flags. The module of a command is loaded when the command runs.
import { Command, Option } from 'commander'
import { loadedLate, parseCount, withInstallation, withRequired } from './commands/flags.ts'
import { naming } from './commands/values.ts'
import { clusterArgument } from './verbs.ts'

/** `kcp snapshot`. */
export function snapshotCommand(): Command {
  return new Command('snapshot')
    .description('save all objects of a logical cluster in a file or an object store, and bring them back')
    .addCommand(createCommand())
    .addCommand(listCommand())
    .addCommand(verifyCommand())
    .addCommand(diffCommand())
    .addCommand(restoreCommand())
}

function createCommand(): Command {
  return withInstallation(new Command('create'))
    .description('save a logical cluster as it is at one moment, while it is in use')
    .addArgument(clusterArgument())
    .option(
      '-o, --output <file>',
      'the file, - for standard output, or s3://BUCKET/KEY (default: NAME-TIME.kcp.tar.zst)',
    )
    .option('--recipient <key...>', 'encrypt it for these public keys of age (age1...)', [])
    .addOption(
      new Option(
        '--store <name>',
        'make a LogicalClusterSnapshot, which the operator keeps in this SnapshotStore',
      ).conflicts(['output', 'recipient']),
    )
    .option(
      '--volumes',
      'with --store: the storage of member clusters keeps snapshots of the volumes of claims, too; the data are not in the file',
    )
    .option('--name <name>', 'with --store: the name of the LogicalClusterSnapshot (default: NAME-TIME)')
    .option('--no-wait', 'with --store: do not wait until it is complete')
    .option('--timeout <seconds>', 'with --store: how long to wait', parseCount, 600)
    .action(loadedLate(() => import('./commands/snapshot-create.ts')))
}

function listCommand(): Command {
  return withInstallation(new Command('list'))
    .description('list the snapshots in a folder or a bucket')
    .argument(
      '[place]',
      'the folder, or s3://BUCKET/PREFIX (default: the current folder, and the LogicalClusterSnapshots of the installation)',
    )
    .addOption(identityOption())
    .addOption(formOption())
    .action(loadedLate(() => import('./commands/snapshot-list.ts')))
}

function verifyCommand(): Command {
  return withInstallation(new Command('verify'))
    .description('check that a snapshot is whole and unchanged, and tell what is in it')
    .argument('<snapshot>', snapshotPlaces)
    .addOption(identityOption())
    .addOption(
      new Option('-o, --output <format>', 'form of the output').choices(['text', 'json', 'yaml']).default('text'),
    )
    .action(loadedLate(() => import('./commands/snapshot-verify.ts')))
}

function diffCommand(): Command {
  return withInstallation(new Command('diff'))
    .description('tell which objects differ; exit code 1 if some do')
    .argument(
      '<before>',
      'a snapshot (a file, s3://BUCKET/KEY, lcs/NAME of a LogicalClusterSnapshot), or the name of a LogicalCluster: as it is now',
    )
    .argument('<after>', 'likewise')
    .addOption(identityOption())
    .addOption(formOption())
    .action(loadedLate(() => import('./commands/snapshot-diff.ts')))
}

function restoreCommand(): Command {
  return withInstallation(new Command('restore'))
    .description('bring the objects of a snapshot back; without --yes, --into only tells what would happen')
    .argument('<snapshot>', snapshotPlaces)
    .option('--as <name>', 'make a new LogicalCluster of it, with uids of its own')
    .addOption(
      naming(
        'logicalCluster',
        new Option('--into <name>', 'put it back into the LogicalCluster that it was taken of').conflicts('as'),
      ),
    )
    .option('--yes', 'with --into: do it')
    .option('--owner <kind:name...>', 'with --as: a user or group of the host: User:alice, Group:team', [])
    .addOption(
      naming('logicalCluster', new Option('--parent <name>', 'with --as: the LogicalCluster that it is below')),
    )
    .option('--no-validate', 'take objects that their kinds do not allow any more')
    .addOption(identityOption())
    .action(loadedLate(() => import('./commands/snapshot-restore.ts')))
}

const snapshotPlaces = 'a file, s3://BUCKET/KEY, or the name of a LogicalClusterSnapshot'

function identityOption(): Option {
  return new Option('--identity <file>', 'the file with the secret keys of age, for an encrypted snapshot')
}

function formOption(): Option {
  return new Option('-o, --output <format>', 'form of the list').choices(['table', 'json', 'yaml']).default('table')
}

/** `kcp backup`. */
export function backupCommand(): Command {
  return withInstallation(new Command('backup'))
    .description('save all logical clusters in a folder or a bucket, while the installation runs')
    .requiredOption('-o, --output <folder>', 'the folder, which must not exist, or s3://BUCKET/PREFIX')
    .option('--recipient <key...>', 'encrypt the snapshots for these public keys of age (age1...)', [])
    .action(loadedLate(() => import('./commands/backup.ts')))
}

/** `kcp restore`. */
export function restoreAllCommand(): Command {
  return withInstallation(new Command('restore'))
    .description('bring all logical clusters of a backup into an installation that does not have them')
    .argument('<folder>', 'the backup, or s3://BUCKET/PREFIX')
    .addOption(identityOption())
    .action(loadedLate(() => import('./commands/restore.ts')))
}

/** `kcp transfer NAME --to FILE`. */
export function transferCommand(): Command {
  const to = 'admin.kubeconfig of its kcp start, beside the keys, or the kubeconfig of its host'
  const command = withInstallation(new Command('transfer'))
    .description('move a logical cluster to another installation while it is in use; writes wait for a moment')
    .addArgument(clusterArgument())
  return withRequired(command, new Option('--to <file>', `the other installation: ${to}`))
    .option('--to-context <name>', 'context in that file (default: its current one)')
    .option('--parent <name>', 'the LogicalCluster there that it is below (default: none)')
    .option('--abort', 'undo a move that was broken off before its switch')
    .option(
      '--forward-days <days>',
      'how long requests at the old address are passed on to the new place; 0: they get 410',
      parseCount,
      30,
    )
    .action(loadedLate(() => import('./commands/transfer.ts')))
}
