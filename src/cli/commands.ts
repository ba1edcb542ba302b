// The commands and their flags. The module of a command is loaded when the command runs.
import { Argument, Command, Option } from 'commander'
import { maxTokenMs, serviceNetworks } from '#crds/index.ts'
import type { Shell } from './commands/completion.ts'
import type { SignInProgram } from './commands/kubeconfig.ts'
import type { SealKeyStep } from './commands/seal-key.ts'
import type { OutputFormat } from './commands/output.ts'
import { naming } from './commands/values.ts'
import { loginCommand } from './login-command.ts'
import { registrations } from './roles/registration.ts'
import { backupCommand, restoreAllCommand, snapshotCommand, transferCommand } from './snapshot-commands.ts'
import { withStoreFlags } from './commands/store-flags.ts'
import {
  adoptCommand,
  clusterArgument,
  clusterOption,
  cordonCommand,
  credentialCommand,
  explainCommand,
  getCommand,
  memberArgument,
  moveCommand,
  namespaceOption,
  outputOption,
  sleepCommand,
  textOutputOption,
  topCommand,
  usageCommand,
  auditCommand,
  volumesCommand,
  useCommand,
  versionCommand,
} from './verbs.ts'
import {
  loadedLate,
  logLevelOption,
  parseCount,
  parseNames,
  parseHost,
  parseListenAddress,
  parseNodes,
  parsePort,
  parseQuantity,
  parseTokenTtl,
  parseWorkersTo,
  withAuditFlags,
  withConsoleFlags,
  withEgressFlags,
  withSignInFlags,
  withInstallation,
  withRequired,
  withStorageFlags,
  withTracingFlags,
  withVolumeMoveFlags,
} from './commands/flags.ts'

/** All commands, in the order of the help. */
export function commands(): readonly Command[] {
  return [
    startCommand(),
    ...grouped('Logical clusters:', [
      createCommand(),
      listCommand(),
      treeCommand(),
      useCommand(),
      getCommand(),
      connectCommand(),
      consoleCommand(),
      kubeconfigCommand(),
      loginCommand(),
      credentialCommand(),
      accessCommand(),
      auditCommand(),
      snapshotCommand(),
      sleepCommand('sleep'),
      sleepCommand('wake'),
      transferCommand(),
    ]),
    ...grouped('Members:', [
      joinCommand(),
      memberCommand(),
      cordonCommand('cordon'),
      cordonCommand('uncordon'),
      drainCommand(),
      fenceCommand(),
      adoptCommand(),
    ]),
    ...grouped('Workloads:', [
      moveCommand(),
      volumesCommand(),
      explainCommand(),
      placementCommand(),
      topCommand(),
      usageCommand(),
    ]),
    ...grouped('APIs:', [exportCommand(), bindCommand(), crdCommand()]),
    ...grouped('The installation:', [
      diagnoseCommand(),
      backupCommand(),
      restoreAllCommand(),
      migrateStoreCommand(),
      versionCommand(),
      sealKeyCommand(),
      unregisterCommand(),
      operatorCommand(),
      apiserverCommand(),
      gatewayCommand(),
      agentCommand(),
      moverCommand(),
      completionCommand(),
    ]),
  ]
}

function grouped(heading: string, members: readonly Command[]): Command[] {
  return members.map((command) => command.helpGroup(heading))
}

/** `kcp start`: everything in one process on an embedded store. */
function startCommand(): Command {
  const start = new Command('start').description(
    'run everything in one process on an embedded store, an etcd or a PostgreSQL; no Kubernetes needed',
  )
  const command = start
    .addOption(
      new Option('--root-dir <dir>', 'directory of all data; created if missing; required, except with --demo'),
    )
    .option('--demo', 'begin with two simulated members, two logical clusters and an application under traffic')
    .hook('preAction', () => requireRootDir(start))
    .option('--port <port>', 'port to listen on', parsePort, 6443)
    .option(
      '--bind-address <address>',
      'address to listen on; use 0.0.0.0 if pods in members must reach it',
      '127.0.0.1',
    )
    .option(
      '--advertise-address <host>',
      'host name or address by which pods in members reach this server (default: the bind address)',
      parseHost,
    )
    .option(
      '--workers <number>',
      '2 (or auto, on two cores or more): a process of its own for the operator, so that placing and syncing do not delay requests',
      parseWorkersTo(2),
      1,
    )
    .option(
      '--metrics-client-secret <name>',
      'write a client certificate that may only read /metrics into this Secret, and renew it; the Secret is in namespace kcp-system of the cluster that kcp runs in (or of KUBECONFIG)',
    )
    .option('--gateway-image <image>', 'the image of kcp for gateways in members (default: that of this version)')
    .addOption(snapshotDirectoryOption())
    .option(
      '--cluster-profiles',
      'show members as ClusterProfiles (multicluster.x-k8s.io) in namespace kcp-system of logical cluster root, once it has that kind',
    )
    .addOption(logLevelOption('warn'))
  withStoreFlags(command, { own: 'sqlite', where: 'a file in --root-dir' })
  return withConsoleFlags(
    withTracingFlags(withEgressFlags(withStorageFlags(withAuditFlags(withSignInFlags(withVolumeMoveFlags(command)))))),
  ).action(loadedLate(() => import('./commands/start.ts')))
}

/** `kcp migrate-store`: a `kcp start` from its file into a server, or back. */
function migrateStoreCommand(): Command {
  const command = withRequired(
    new Command('migrate-store').description(
      'take the data of a kcp start, which must not run, from its file into an etcd or a PostgreSQL, or back',
    ),
    new Option('--root-dir <dir>', 'directory of kcp start'),
  )
    .option('--back', 'from the server into a file')
    .addOption(logLevelOption('warn'))
  return withStoreFlags(command, { own: 'sqlite', where: 'a file in --root-dir' }).action(
    loadedLate(() => import('./commands/migrate-store.ts')),
  )
}

function requireRootDir(start: Command): void {
  const { rootDir, demo } = start.opts<{ rootDir?: string; demo?: boolean }>()
  if (rootDir === undefined && demo !== true)
    start.error("error: required option '--root-dir <dir>' not specified", {
      code: 'commander.missingMandatoryOptionValue',
    })
}

/** `kcp create NAME`: a new logical cluster, ready to be used. */
function createCommand(): Command {
  return withInstallation(new Command('create'))
    .description('create a logical cluster and wait until it is ready')
    .argument('<name>', 'name of the LogicalCluster')
    .option('--owner <kind:name...>', 'a user or group of the host with all rights inside: User:alice, Group:team', [])
    .addOption(naming('logicalCluster', new Option('--parent <name>', 'the LogicalCluster that it is below')))
    .addOption(
      naming('logicalCluster', new Option('--from <name>', 'begin with a copy of the objects of this LogicalCluster')),
    )
    .addOption(
      new Option('--snapshot <name>', 'begin with the objects of this LogicalClusterSnapshot').conflicts('from'),
    )
    .option('--volumes', 'with --from: copy the volumes of claims, too, by a LogicalClusterSnapshot in --store')
    .option('--store <name>', 'with --volumes: its SnapshotStore; the snapshot is deleted after an hour')
    .option('--no-wait', 'do not wait')
    .option('--timeout <seconds>', 'how long to wait', parseCount, 60)
    .addOption(new Option('-o, --output <format>', 'form of the output').choices(createdFormats).default('text'))
    .action(loadedLate(() => import('./commands/create.ts')))
}

const createdFormats = ['text', 'table', 'wide', 'name', 'json', 'yaml'] satisfies (OutputFormat | 'text')[]

/** `kcp list`: the logical clusters of an installation. */
function listCommand(): Command {
  return withInstallation(new Command('list'))
    .description('list the logical clusters')
    .addOption(outputOption())
    .action(loadedLate(() => import('./commands/list.ts')))
}

/** `kcp tree [NAME]`: the logical clusters below their parents. */
function treeCommand(): Command {
  return withInstallation(new Command('tree'))
    .description('show the logical clusters below their parents, with their limits')
    .addArgument(clusterArgument('[name]'))
    .addOption(textOutputOption())
    .action(loadedLate(() => import('./commands/tree.ts')))
}

/** `kcp connect NAME -- COMMAND`: a command inside a logical cluster. */
function connectCommand(): Command {
  return withInstallation(new Command('connect'))
    .description(
      'run a command, or a shell, whose KUBECONFIG leads into a logical cluster: kcp connect acme -- kubectl get pods',
    )
    .addArgument(clusterArgument())
    .argument('[command...]', 'the command with its arguments, after -- (default: $SHELL)')
    .action(loadedLate(() => import('./commands/connect.ts')))
}

/** `kcp console [NAME]`: a link that signs a browser in. */
function consoleCommand(): Command {
  return withInstallation(new Command('console'))
    .description('print a link that opens the console in a browser; it works once, within five minutes')
    .addArgument(
      naming(
        'logicalCluster',
        new Argument(
          '[name]',
          'a LogicalCluster: the session is that of its admin (default: the admin of the installation)',
        ),
      ),
    )
    .option('--open', 'open the link in the browser of this machine')
    .option('--end-all', 'print no link: end all sessions of the console, of everybody')
    .option(
      '--url <url>',
      'the address at which the browser reaches the console (default: --console-origin of the server, or the server itself)',
    )
    .action(loadedLate(() => import('./commands/console.ts')))
}

/** `kcp kubeconfig NAME`: prints a kubeconfig for one logical cluster, with admin rights inside it and none outside. */
function kubeconfigCommand(): Command {
  return withInstallation(new Command('kubeconfig'))
    .description('print a kubeconfig for a logical cluster, with admin rights inside it and none outside')
    .addArgument(clusterArgument())
    .option('--days <days>', 'validity of the client certificate', '365')
    .addOption(
      new Option(
        '--login [program]',
        'without credentials: its users sign in with an identity provider, by this program (default: kcp)',
      ).choices(['kcp', 'kubelogin'] satisfies SignInProgram[]),
    )
    .option('--oidc-issuer-url <url>', 'with --login: the provider (default: the one in spec.authentication)')
    .option('--oidc-client-id <id>', 'with --login: the client that the provider knows (default: the only audience)')
    .option('--oidc-extra-scope <scopes>', 'with --login: scopes besides openid, with commas', parseNames, [])
    .option('--certificate-authority <file>', 'with --login: authority of the certificate of the provider')
    .action(loadedLate(() => import('./commands/kubeconfig.ts')))
}

/** `kcp member`: registered clusters. */
function memberCommand(): Command {
  return new Command('member')
    .description('register clusters that run the workloads of tenants')
    .addCommand(memberJoinCommand())
    .addCommand(memberApproveCommand())
    .addCommand(memberRevokeCommand())
    .addCommand(memberSimulateCommand())
}

/** `kcp access`: the exec plugin of clients that read ClusterProfiles. */
function accessCommand(): Command {
  return new Command('access')
    .description(
      'print an ExecCredential for the member or logical cluster in KUBERNETES_EXEC_INFO; clients of ClusterProfiles run this command',
    )
    .option('--kubeconfig <file>', 'the API with the ClusterProfiles (default: KUBECONFIG, or the pod we run in)')
    .option('--context <name>', 'context in that file (default: its current one)')
    .action(loadedLate(() => import('./commands/access.ts')))
}

/** `kcp join NAME`: the short form of `kcp member join NAME`. */
function joinCommand(): Command {
  return memberJoinCommand()
}

/** `kcp member join NAME`: registers a physical cluster that we can reach, or whose agent reaches us. */
function memberJoinCommand(): Command {
  const network = new Option(
    '--service-network <type>',
    'Flat: pods of members reach each other by address; Gateway: they reach Services of each other through a gateway that kcp runs in each; None: they do not (default: None, or what the member has)',
  )
  return withInstallation(new Command('join'))
    .description(
      "register a cluster: create kcp's identity in it, with the permissions that syncing needs, and a MemberCluster",
    )
    .argument('<name>', 'name of the MemberCluster')
    .option(
      '--kubeconfig <file>',
      'kubeconfig of an admin of that cluster; used once, not stored; required, except with --pull',
    )
    .option('--context <name>', 'context in that file (default: its current one)')
    .addOption(network.choices(serviceNetworks))
    .option(
      '--export <resource.group...>',
      'offer these custom resources of that cluster to logical clusters, in addition to those that it offers already',
      [],
    )
    .option(
      '--pull',
      'for a cluster that kcp cannot reach: print a manifest to apply there, whose agent dials out to kcp; it holds a one-time token',
    )
    .option('--approve', 'with --pull: accept the first agent that shows the token (default: kcp member approve)')
    .addOption(
      new Option('--token-ttl <duration>', 'with --pull: how long the token is valid, at most 24h')
        .argParser(parseTokenTtl)
        .default(maxTokenMs, '24h'),
    )
    .option(
      '--server <url>',
      'with --pull: https URL at which that cluster reaches kcp (default: the one that kcp has published)',
    )
    .option('--http-proxy <url>', 'with --pull: HTTP proxy through which that cluster reaches kcp (CONNECT)')
    .option('--image <image>', 'with --pull: the image of kcp for the agent (default: that of this version)')
    .option('--apply', 'with --pull: apply the manifest with --kubeconfig, and print nothing')
    .action(loadedLate(() => import('./commands/member-join.ts')))
}

/** `kcp member approve NAME`: accepts the agent that has asked. */
function memberApproveCommand(): Command {
  return withInstallation(new Command('approve'))
    .description('accept the agent of a member in pull mode: show what it claims, and let it have its certificate')
    .addArgument(memberArgument())
    .option('--key <fingerprint>', 'refuse any other key than this one, which the log of the agent shows')
    .option('--show', 'only show what the agent claims')
    .action(loadedLate(() => import('./commands/member-approve.ts')))
}

/** `kcp member revoke NAME`: ends the agent of a member. */
function memberRevokeCommand(): Command {
  return withInstallation(new Command('revoke'))
    .description(
      'refuse the certificates of the agent of a member at once, and end its connections; what runs there goes on',
    )
    .addArgument(memberArgument())
    .action(loadedLate(() => import('./commands/member-revoke.ts')))
}

/** `kcp member simulate NAME`: runs a member in this process, to try and to test. */
function memberSimulateCommand(): Command {
  const network = new Option('--service-network <type>', 'None or Flat; pods of other processes are not reached')
  return withInstallation(new Command('simulate'))
    .description('run a simulated member in this process, without containers, and register it; for trying and testing')
    .argument('<name>', 'name of the MemberCluster')
    .option('--nodes <count>', 'how many nodes, at most 200', parseNodes, 2)
    .option('--node-cpu <quantity>', 'CPU of a node', parseQuantity, '4')
    .option('--node-memory <quantity>', 'memory of a node', parseQuantity, '8Gi')
    .option('--region <name>', 'label region of the MemberCluster and region of its nodes')
    .option(
      '--pod-start-ms <ms>',
      'from the binding of a pod to its start, with the pull of its image',
      parseCount,
      1000,
    )
    .option('--port <port>', 'port on 127.0.0.1; 0: any free one', parsePort, 0)
    .addOption(network.choices(['None', 'Flat']).default('None'))
    .option(
      '--data-dir <dir>',
      'keep the data there, so that the member can be started again (default: a temporary directory)',
    )
    .addOption(logLevelOption('error'))
    .action(loadedLate(() => import('./commands/member-simulate.ts')))
}

/** `kcp drain MEMBER`: moves everything that runs in a member cluster to others, or shows what would move where. */
function drainCommand(): Command {
  return withInstallation(new Command('drain'))
    .description('move everything that runs in a member cluster to others (spec.state: Draining)')
    .addArgument(memberArgument())
    .option('--dry-run', 'only show which workload would go where, and which have nowhere to go')
    .option(
      '--undo',
      'let the member take workloads again (spec.state: Active); workloads that have moved stay where they are',
    )
    .option('--wait', 'wait until nothing is left there')
    .option('--timeout <seconds>', 'how long to wait', parseCount, 1800)
    .addOption(outputOption())
    .action(loadedLate(() => import('./commands/drain.ts')))
}

/** `kcp fence MEMBER`: declares that nothing runs any more in a member cluster that does not respond. */
function fenceCommand(): Command {
  return withInstallation(new Command('fence'))
    .description(
      'declare that a member cluster that does not answer is switched off, so that all its workloads start elsewhere',
    )
    .addArgument(memberArgument())
    .option('--undo', 'let the member take workloads again as soon as it answers')
    .action(loadedLate(() => import('./commands/fence.ts')))
}

/** `kcp seal-key`: replaces the key with which tenants' Secrets are sealed in a host, while kcp runs. */
function sealKeyCommand(): Command {
  const step = (name: SealKeyStep, description: string): Command =>
    new Command(name)
      .description(description)
      .option('--host-kubeconfig <file>', 'kubeconfig of the host cluster (default: KUBECONFIG, or the pod we run in)')
      .action(
        loadedLate(async () => {
          const { runSealKey } = await import('./commands/seal-key.ts')
          return { run: runSealKey(name) }
        }),
      )
  return new Command('seal-key')
    .description("replace the key with which tenants' Secrets are sealed in a host: add, use, reseal, drop")
    .addCommand(step('add', 'first: add a key that seals nothing yet'))
    .addCommand(step('use', 'second, after a restart: seal with it from now on'))
    .addCommand(
      step('reseal', 'third, after a restart: seal all Secrets with the new key that a former key has sealed'),
    )
    .addCommand(step('drop', 'last: remove former keys, without which older backups of the host cannot be read'))
}

/** `kcp placement explain KIND/NAME`: why a workload runs where it does, filter by filter and score by score. */
function placementCommand(): Command {
  const explain = withInstallation(new Command('explain'))
    .description('show why a workload runs where it does: what each filter and score says about each member cluster')
    .addArgument(naming('workload', new Argument('<workload>', 'KIND/NAME, such as deployment/web')))
    .addOption(clusterOption())
    .addOption(namespaceOption())
    .addOption(textOutputOption())
    .action(loadedLate(() => import('./commands/placement-explain.ts')))
  return new Command('placement').description('where workloads run').addCommand(explain)
}

/** `kcp operator`: the loops over our custom resources in a host. */
function operatorCommand(): Command {
  const command = new Command('operator')
    .description('reconcile LogicalClusters and MemberClusters of a host, place workloads, sync members')
    .option('--kubeconfig <file>', 'the host (default: KUBECONFIG, or the pod we run in)')
    .option(
      '--apiserver-url <url>',
      "URL of kcp apiserver's direct listener (default: the one that it has published in the host)",
    )
    .option(
      '--host-url <url>',
      "URL at which tenants reach the host's API endpoint, for status.url (default: the one that kcp uses itself)",
    )
    .option(
      '--metrics-port <port>',
      'serve /metrics over TLS on this port, to the client certificate of Secret kcp-metrics-client (default: not served)',
      parsePort,
    )
    .option(
      '--cluster-profiles',
      'show members as ClusterProfiles (multicluster.x-k8s.io) in namespace kcp-system, once the host has that kind',
    )
    .option('--gateway-image <image>', 'the image of kcp for gateways in members (default: that of this version)')
    .addOption(snapshotDirectoryOption())
    .addOption(logLevelOption('info'))
  return withTracingFlags(withVolumeMoveFlags(command)).action(loadedLate(() => import('./commands/operator.ts')))
}

function snapshotDirectoryOption(): Option {
  return new Option(
    '--snapshot-directory <dir>',
    'the directory in which SnapshotStores may have directories; it must exist (default: SnapshotStores are buckets)',
  )
}

/** `kcp apiserver`: the virtual API server in front of a host. */
function apiserverCommand(): Command {
  const command = new Command('apiserver')
    .description(
      "serve logical clusters that are stored in a host's etcd, through the host's own API endpoint and directly",
    )
    .option('--kubeconfig <file>', 'the host (default: KUBECONFIG, or the pod we run in)')
    .option('--port <port>', 'port to listen on', parsePort, 6443)
    .option('--bind-address <address>', 'address to listen on', '0.0.0.0')
    .option(
      '--advertise-address <host>',
      "address at which the host's kube-apiserver and pods in members reach this process (default: this machine's own)",
      parseHost,
    )
    .option('--advertise-port <port>', 'port at that address, if it is not --port', parsePort)
    .option('--peer-port <port>', 'port for the other replicas of kcp apiserver; 0: any free one', parsePort, 0)
    .option(
      '--peer-address <address>',
      "address at which the other replicas reach this one (default: --bind-address, or this machine's own)",
    )
    .option(
      '--workers <number>',
      'processes that share the work, each with its share of the logical clusters; auto: one for each core that the container may use; ' +
        'with --peer-port, the ports after it are for the other workers',
      parseWorkersTo(64),
      1,
    )
    .addOption(
      new Option(
        '--register <what>',
        'what to apply in the host. all: Service, EndpointSlice and APIService; apiservice: only the APIService, if a Service ' +
          'kcp-apiserver selects the pods of kcp; none: nothing',
      )
        .choices(registrations)
        .default('all'),
    )
    .option(
      '--metrics-client-secret <name>',
      'write a client certificate that may only read /metrics into this Secret in namespace kcp-system, and renew it',
    )
    .option(
      '--storage-total <MiB>',
      'how much all logical clusters together may store in the host, where an object counts half a KiB more than its size; above it creations are ' +
        "refused (403); keep it below the quota of the host's etcd; 0: no limit",
      parseCount,
      1536,
    )
    .addOption(logLevelOption('info'))
  withStoreFlags(command, { own: 'host', where: "custom resources in the host's etcd" })
  return withConsoleFlags(
    withTracingFlags(withEgressFlags(withStorageFlags(withAuditFlags(withSignInFlags(withVolumeMoveFlags(command)))))),
  ).action(loadedLate(() => import('./commands/apiserver.ts')))
}

/** `kcp gateway`: runs in a member whose pod network is not joined with that of other members. */
function gatewayCommand(): Command {
  return new Command('gateway')
    .description('forward connections between this member and Services of other members (kcp runs it in members)')
    .option('--kubeconfig <file>', 'the member (default: the pod we run in)')
    .option(
      '--namespace <namespace>',
      'namespace with the Secret kcp-gateway and the ConfigMaps of peers',
      'kcp-system',
    )
    .option('--port <port>', 'port for the gateways of other members', parsePort, 8443)
    .option('--health-port <port>', 'port of /readyz, /livez and /metrics, over HTTP', parsePort, 8080)
    .option(
      '--max-connections <count>',
      'how many connections may be open at a time; more are refused',
      parseCount,
      20_000,
    )
    .option(
      '--max-connections-per-logical-cluster <count>',
      'how many of them may be to Services of one logical cluster; more are refused',
      parseCount,
      5000,
    )
    .option('--idle-seconds <seconds>', 'after how long without data a connection is reset', parseCount, 3600)
    .option(
      '--grace-seconds <seconds>',
      'how long open connections may continue after the gateway was told to stop',
      parseCount,
      30,
    )
    .addOption(logLevelOption('info'))
    .action(loadedLate(() => import('./commands/gateway.ts')))
}

/** `kcp agent`: runs in a member in pull mode. */
function agentCommand(): Command {
  return new Command('agent')
    .description('connect this member to kcp from inside, where kcp has no way in (pull mode; kcp runs it in members)')
    .option('--kubeconfig <file>', 'the member (default: the pod we run in)')
    .option('--namespace <namespace>', 'namespace with the Secrets kcp-agent-join and kcp-agent', 'kcp-system')
    .option('--api-port <port>', 'port at which pods of this member reach their API', parsePort, 6443)
    .option('--health-port <port>', 'port of /readyz and /livez, over HTTP', parsePort, 8080)
    .addOption(logLevelOption('info'))
    .action(loadedLate(() => import('./commands/agent.ts')))
}

/** `kcp mover`: one side of the copy of a volume; the operator starts it in members. */
function moverCommand(): Command {
  return new Command('mover')
    .description('copy a volume to another member, as its source or its target (kcp runs it in members)')
    .addOption(
      new Option('--role <role>', 'source: only reads its volume; target: makes its volume equal to that of the source')
        .choices(['source', 'target'])
        .makeOptionMandatory(),
    )
    .requiredOption('--volume <path>', 'folder where the volume is mounted, or its block device')
    .option('--block', 'the volume is a block device')
    .requiredOption('--credentials <dir>', 'folder with tls.crt, tls.key and ca.crt of this party of the move')
    .addOption(
      new Option('--listen <address>', 'address and port to listen on, such as 10.0.0.7:8443')
        .argParser(parseListenAddress)
        .default({ host: '::', port: 8443 }, ':8443'),
    )
    .addOption(logLevelOption('info'))
    .action(loadedLate(() => import('./commands/mover.ts')))
}

/** `kcp export CRD...`: an APIExport. */
function exportCommand(): Command {
  return withInstallation(new Command('export'))
    .description('offer CustomResourceDefinitions of a logical cluster to others (APIExport)')
    .argument('<crds...>', 'names of CustomResourceDefinitions, such as widgets.example.com')
    .addOption(clusterOption())
    .option('--name <name>', 'name of the APIExport (default: that of the first definition)')
    .option('--require-admission', 'refuse writes in consumers that do not accept webhooks and policies of this one')
    .action(loadedLate(() => import('./commands/export.ts')))
}

/** `kcp bind PROVIDER:EXPORT`: an APIBinding. */
function bindCommand(): Command {
  return withInstallation(new Command('bind'))
    .description('use an API that another logical cluster exports (APIBinding)')
    .argument('<export>', 'LOGICALCLUSTER:EXPORT')
    .addOption(clusterOption())
    .option('--name <name>', 'name of the APIBinding (default: that of the export)')
    .option('--grant', 'let all users of the logical cluster bind the export (RBAC in that of the export)')
    .option('--accept <claims>', 'permission claims to accept, with commas, such as secrets.core', parseNames)
    .option('--reject <claims>', 'permission claims to reject, with commas', parseNames)
    .option('--accept-admission', 'let webhooks and policies of the provider act on the objects of the export here')
    .option('--timeout <seconds>', 'how long to wait until the binding is ready', parseCount, 30)
    .action(loadedLate(() => import('./commands/bind.ts')))
}

/** `kcp crd`: definitions of custom resources. */
function crdCommand(): Command {
  const check = withInstallation(new Command('check'))
    .description(
      'name each difference between two states of a CustomResourceDefinition that breaks clients or stored objects; exit code 1 if there is any',
    )
    .argument('<old>', 'a file, or with --clusters the name of the CustomResourceDefinition')
    .argument('<new>', 'a file')
    .option('--clusters <names>', 'try the stored objects of these logical clusters, with commas', parseNames)
    .option('--all-clusters', 'try the stored objects of all logical clusters')
    .addOption(textOutputOption())
    .action(loadedLate(() => import('./commands/crd-check.ts')))
  return new Command('crd').description('check CustomResourceDefinitions').addCommand(check)
}

/** `kcp unregister`: deletes our APIService in a host, before the server behind it is removed. */
function unregisterCommand(): Command {
  return new Command('unregister')
    .description('delete our APIService in the host; run it before the last kcp apiserver of the host is removed')
    .option('--kubeconfig <file>', 'the host (default: KUBECONFIG, or the pod we run in)')
    .action(loadedLate(() => import('./commands/unregister.ts')))
}

/** `kcp diagnose`: names the faults of an installation and their remedies. */
function diagnoseCommand(): Command {
  return withInstallation(new Command('diagnose'))
    .description('say what is wrong with an installation and what to do; exit code 1 if anything is')
    .addOption(
      new Option('--kubeconfig <file>', 'the same as --host-kubeconfig').conflicts(['rootDir', 'hostKubeconfig']),
    )
    .addOption(textOutputOption())
    .action(loadedLate(() => import('./commands/diagnose.ts')))
}

/** `kcp completion SHELL`: prints the script with which a shell completes the words of a command. */
function completionCommand(): Command {
  return new Command('completion')
    .description('print the script with which bash, zsh or fish completes commands: source <(kcp completion bash)')
    .addArgument(new Argument('<shell>', 'the shell').choices(['bash', 'zsh', 'fish'] satisfies Shell[]))
    .action(loadedLate(() => import('./commands/completion.ts')))
}

/** `kcp __complete WORDS...`, which the completion scripts and kubectl call. The help does not show it. */
export function completeCommand(program: Command): Command {
  return new Command('__complete')
    .argument('[words...]')
    .allowUnknownOption()
    .helpOption(false)
    .action(async (_words: unknown, _options: unknown, { args }: Command) => {
      const { printCompletions } = await import('./commands/completion.ts')
      await printCompletions(program, args)
    })
}
