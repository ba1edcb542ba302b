// The commands about snapshots and their flags. The module of a command is loaded when the command runs.
import { Command, Option } from 'commander'
import { loadedLate, withInstallation } from './commands/flags.ts'
import { naming } from './commands/values.ts'
import { clusterArgument } from './verbs.ts'

/** `kcp snapshot`. */
export function snapshotCommand(): Command {
  return new Command('snapshot')
    .description('save all objects of a logical cluster in a file, and bring them back')
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
    .option('-o, --output <file>', 'the file, or - for standard output (default: NAME-TIME.kcp.tar.zst)')
    .option('--recipient <key...>', 'encrypt it for these public keys of age (age1...)', [])
    .action(loadedLate(() => import('./commands/snapshot-create.ts')))
}

function listCommand(): Command {
  return new Command('list')
    .description('list the snapshots in a folder')
    .argument('[folder]', 'the folder (default: the current one)')
    .addOption(identityOption())
    .addOption(formOption())
    .action(loadedLate(() => import('./commands/snapshot-list.ts')))
}

function verifyCommand(): Command {
  return new Command('verify')
    .description('check that a snapshot is whole and unchanged, and tell what is in it')
    .argument('<file>', 'the snapshot')
    .addOption(identityOption())
    .addOption(
      new Option('-o, --output <format>', 'form of the output').choices(['text', 'json', 'yaml']).default('text'),
    )
    .action(loadedLate(() => import('./commands/snapshot-verify.ts')))
}

function diffCommand(): Command {
  return withInstallation(new Command('diff'))
    .description('tell which objects differ; exit code 1 if some do')
    .argument('<before>', 'a snapshot, or the name of a LogicalCluster: as it is now')
    .argument('<after>', 'likewise')
    .addOption(identityOption())
    .addOption(formOption())
    .action(loadedLate(() => import('./commands/snapshot-diff.ts')))
}

function restoreCommand(): Command {
  return withInstallation(new Command('restore'))
    .description('bring the objects of a snapshot back; without --yes, --into only tells what would happen')
    .argument('<file>', 'the snapshot')
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

function identityOption(): Option {
  return new Option('--identity <file>', 'the file with the secret keys of age, for an encrypted snapshot')
}

function formOption(): Option {
  return new Option('-o, --output <format>', 'form of the list').choices(['table', 'json', 'yaml']).default('table')
}

/** `kcp backup`. */
export function backupCommand(): Command {
  return withInstallation(new Command('backup'))
    .description('save all logical clusters in a folder, while the installation runs')
    .requiredOption('-o, --output <folder>', 'the folder, which must not exist')
    .option('--recipient <key...>', 'encrypt the snapshots for these public keys of age (age1...)', [])
    .action(loadedLate(() => import('./commands/backup.ts')))
}

/** `kcp restore FOLDER`. */
export function restoreAllCommand(): Command {
  return withInstallation(new Command('restore'))
    .description('bring all logical clusters of a backup into an installation that does not have them')
    .argument('<folder>', 'the backup')
    .addOption(identityOption())
    .action(loadedLate(() => import('./commands/restore.ts')))
}
