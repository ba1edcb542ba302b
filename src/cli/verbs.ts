// The commands with which people look at an installation and change it. The module of a command is loaded when the
// command runs.
import { Argument, Command, Option } from 'commander'
import type { OutputFormat } from './commands/output.ts'
import type { TopSubject } from './commands/top.ts'
import type { UsageFormat } from './commands/usage.ts'
import { loadedLate, parseCount, parseNames, withInstallation, withRequired } from './commands/flags.ts'
import { naming } from './commands/values.ts'

const outputFormats = ['table', 'wide', 'name', 'json', 'yaml'] satisfies OutputFormat[]

/** `-o` of a command that prints objects or a table. */
export function outputOption(): Option {
  return new Option('-o, --output <format>', 'form of the output').choices(outputFormats).default('table')
}

/** `-o` of a command that prints sentences. */
export function textOutputOption(): Option {
  return new Option('-o, --output <format>', 'form of the output').choices(['text', 'json', 'yaml']).default('text')
}

/** `-c` of a command that acts in one logical cluster. */
export function clusterOption(): Option {
  const text = 'the logical cluster (default: that of `kcp use`)'
  return naming('logicalCluster', new Option('-c, --cluster <name>', text))
}

/** `-n` with the default of `kcp use`. */
export function namespaceOption(): Option {
  return new Option('-n, --namespace <name>', 'the namespace (default: that of the context of `kcp use`, else default)')
}

/** The name of a logical cluster as an argument. */
export function clusterArgument(text = '<name>'): Argument {
  return naming('logicalCluster', new Argument(text, 'name of the LogicalCluster'))
}

/** The name of a member as an argument. */
export function memberArgument(): Argument {
  return naming('member', new Argument('<member>', 'name of the MemberCluster'))
}

/** `kcp use [NAME]`: the logical cluster that kubectl and these commands take. */
export function useCommand(): Command {
  return withInstallation(new Command('use'))
    .description('make a logical cluster the current context of kubectl, list such contexts, or go back (-)')
    .addArgument(
      naming('used', new Argument('[name]', 'name of the LogicalCluster; -: the context before (default: list)')),
    )
    .action(loadedLate(() => import('./commands/use.ts')))
}

/** `kcp credential NAME`: the exec plugin of the contexts that `kcp use` writes. */
export function credentialCommand(): Command {
  return withInstallation(new Command('credential'))
    .description('print a certificate of one hour for a logical cluster; kubectl calls it for contexts of kcp use')
    .addArgument(clusterArgument())
    .action(loadedLate(() => import('./commands/credential.ts')))
}

/** `kcp get KIND`: objects across logical clusters. */
export function getCommand(): Command {
  const clusters = new Option('--clusters <names>', 'only of these logical clusters, with commas (default: all)')
  return withInstallation(new Command('get'))
    .description('list objects of a kind across logical clusters; also members and logicalclusters')
    .addArgument(naming('kind', new Argument('<kind>', 'kind, plural or short name, with or without the group')))
    .argument('[names...]', 'only these objects')
    .option('-A, --all-namespaces', 'of all namespaces')
    .addOption(namespaceOption())
    .addOption(naming('logicalClusters', clusters.argParser(parseNames)))
    .option('-l, --selector <labels>', 'label selector, such as app=web,tier!=test')
    .option('--field-selector <fields>', 'field selector, such as status.phase=Pending')
    .option('-w, --watch', 'go on with the changes')
    .addOption(outputOption())
    .action(loadedLate(() => import('./commands/get.ts')))
}

/** `kcp cordon MEMBER`, `kcp uncordon MEMBER`. */
export function cordonCommand(name: 'cordon' | 'uncordon'): Command {
  const [state, text] =
    name === 'cordon'
      ? (['Cordoned', 'let a member take no new workloads; what runs there stays (spec.state: Cordoned)'] as const)
      : (['Active', 'let a member take workloads again (spec.state: Active)'] as const)
  return withInstallation(new Command(name))
    .description(text)
    .addArgument(memberArgument())
    .action(
      loadedLate(async () => {
        const { runCordon } = await import('./commands/cordon.ts')
        return { run: runCordon(state) }
      }),
    )
}

/** `kcp sleep NAME`, `kcp wake NAME`. */
export function sleepCommand(name: 'sleep' | 'wake'): Command {
  const [text, hold] =
    name === 'sleep'
      ? (['put a logical cluster to sleep: its workloads have no pods until it wakes', 'no write wakes it'] as const)
      : (['wake a logical cluster that is asleep', 'neither idleness nor its schedule puts it to sleep'] as const)
  return withInstallation(new Command(name))
    .description(text)
    .addArgument(clusterArgument())
    .option('--hold', `keep it so: ${hold} (spec.sleep.asleep)`)
    .action(
      loadedLate(async () => {
        const { runOrder } = await import('./commands/sleep.ts')
        return { run: runOrder(name) }
      }),
    )
}

/** `kcp move KIND/NAME --to MEMBER`. */
export function moveCommand(): Command {
  const target = 'members, with commas; any: kcp chooses; none: nowhere'
  const command = withInstallation(new Command('move'))
    .description(
      'move a workload, or a namespace with all its workloads, to other members (annotation kcp.dev/clusters)',
    )
    .addArgument(naming('workload', new Argument('<workload>', 'KIND/NAME, such as deployment/web or namespace/shop')))
    .addOption(clusterOption())
    .addOption(namespaceOption())
  return withRequired(command, naming('member', new Option('--to <members>', target)))
    .option('--dry-run', 'change nothing, and tell what the server says')
    .option('--wait', 'tell each state of each copy, until all copies serve where they should')
    .option('--timeout <seconds>', 'how long to wait', parseCount, 600)
    .action(loadedLate(() => import('./commands/move.ts')))
}

/** `kcp volumes`. */
export function volumesCommand(): Command {
  return withInstallation(new Command('volumes'))
    .description('list volumes that move between members: how far they are, and what they wait for')
    .addOption(naming('logicalCluster', new Option('-c, --cluster <name>', 'only of this logical cluster')))
    .option('-n, --namespace <name>', 'only of this namespace')
    .addOption(
      new Option(
        '--agree <claim>',
        'let the application of this claim be stopped, or go on without later writes after the loss of a member',
      ),
    )
    .option('--yes', 'with --agree: do it; without, only tell what would happen')
    .addOption(
      new Option('-o, --output <format>', 'form of the list')
        .choices(['table', 'wide', 'name', 'json', 'yaml'])
        .default('table'),
    )
    .action(loadedLate(() => import('./commands/volumes.ts')))
}

/** `kcp adopt NAMESPACE`. */
export function adoptCommand(): Command {
  const command = withInstallation(new Command('adopt'))
    .description('take a running namespace of a member into a logical cluster, without a restart; shows the plan first')
    .argument('<namespace>', 'the namespace in the member')
  const from = naming('member', new Option('--from <member>', 'name of the MemberCluster'))
  const into = naming(
    'logicalCluster',
    new Option('--into <cluster>', 'the LogicalCluster, or CLUSTER/NAMESPACE for another name of the namespace there'),
  )
  return withRequired(withRequired(command, from), into)
    .option('--yes', 'do it without a question')
    .option('--undo', 'give the namespace back to the member as it was')
    .option(
      '--member-kubeconfig <file>',
      'kubeconfig of an admin of the member, to consent with; used once, not stored',
    )
    .option('--member-context <name>', 'context in that file (default: its current one)')
    .option('--timeout <seconds>', 'how long to wait', parseCount, 300)
    .addOption(
      new Option('-o, --output <format>', 'form of the plan').choices(['table', 'json', 'yaml']).default('table'),
    )
    .action(loadedLate(() => import('./commands/adopt.ts')))
}

/** `kcp explain WHAT`. */
export function explainCommand(): Command {
  const text = 'KIND/NAME, member/NAME, or the name of a logical cluster (default: that of `kcp use`)'
  return withInstallation(new Command('explain'))
    .description('say why nothing is happening: what waits, for what, since when, and what to do')
    .addArgument(naming('explained', new Argument('[what]', text)))
    .addOption(clusterOption())
    .addOption(namespaceOption())
    .addOption(textOutputOption())
    .action(loadedLate(() => import('./commands/explain.ts')))
}

/** `kcp top SUBJECT`. */
export function topCommand(): Command {
  const subjects = ['clusters', 'members', 'pods'] satisfies TopSubject[]
  const clusters = new Option('--clusters <names>', 'only of these logical clusters, with commas (default: all)')
  return withInstallation(new Command('top'))
    .description('show what logical clusters, members or pods request and use')
    .addArgument(new Argument('[subject]', 'of what').choices(subjects).default('clusters'))
    .addOption(naming('logicalClusters', clusters.argParser(parseNames)))
    .addOption(new Option('--sort-by <column>', 'order').choices(['name', 'cpu', 'memory']).default('cpu'))
    .option('-w, --watch', 'refresh it every two seconds')
    .addOption(outputOption())
    .action(loadedLate(() => import('./commands/top.ts')))
}

/** `kcp usage [NAME]`: what logical clusters have used. */
export function usageCommand(): Command {
  const formats = ['table', 'csv', 'json', 'opencost'] satisfies UsageFormat[]
  return withInstallation(new Command('usage'))
    .description(
      'show what logical clusters have used: requests, watches, storage, and CPU, memory and pods in members',
    )
    .addArgument(naming('logicalCluster', new Argument('[name]', 'only this logical cluster')))
    .option(
      '--since <time>',
      'a duration such as 24h or 30d, or a time in RFC 3339; from the start of that hour',
      '24h',
    )
    .option('--hourly', 'a row for each hour (default: the sum)')
    .option(
      '--prices <prices>',
      'of an hour, for opencost: cpu=PRICE,memory=PRICE,storage=PRICE; memory and storage by GiB',
    )
    .addOption(new Option('-o, --output <format>', 'form of the output').choices(formats).default('table'))
    .action(loadedLate(() => import('./commands/usage.ts')))
}

/** `kcp audit [NAME]`: the audit events that a logical cluster keeps for its users. */
export function auditCommand(): Command {
  return withInstallation(new Command('audit'))
    .description('show who did what in a logical cluster: its last audit events')
    .addArgument(clusterArgument('[name]'))
    .addOption(new Option('--kubeconfig <file>', 'read as its user the log of the logical cluster that it leads to'))
    .option('--context <name>', 'context in that file (default: its current one)')
    .option('-f, --follow', 'go on with what happens from now on')
    .option('--user <name>', 'only of this user')
    .addOption(new Option('--verb <verbs>', 'only these, with commas').argParser(parseNames))
    .option('--resource <resource>', 'only this one: secrets, pods/exec, deployments.apps')
    .option('--since <time>', 'a duration such as 15m or 24h, or a time in RFC 3339')
    .addOption(new Option('-o, --output <format>', 'form of the output').choices(['table', 'json']).default('table'))
    .action(loadedLate(() => import('./commands/audit.ts')))
}

/** `kcp version`. */
export function versionCommand(): Command {
  return withInstallation(new Command('version'))
    .description('print the version of this program, and of the installation if one is found')
    .addOption(textOutputOption())
    .action(loadedLate(() => import('./commands/version.ts')))
}
