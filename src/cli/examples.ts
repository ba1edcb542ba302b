// The examples with which the help of each command begins: what a person types first.
import type { Command } from 'commander'

/** The examples of each command, by its path below `kcp`. A test checks that no command is without. */
const examples: Readonly<Record<string, readonly string[]>> = {
  '': [
    'kcp start --root-dir .run/kcp                        # everything in one process',
    'kcp create acme                                      # a logical cluster',
    'kcp use acme                                         # kubectl works in it',
    'kcp join east --kubeconfig east.kubeconfig           # a cluster that runs pods',
    'kcp explain acme                                     # why is nothing happening?',
  ],
  member: [
    'kcp member join east --kubeconfig east.kubeconfig',
    'kcp member join lab --pull > lab.yaml    # for a cluster behind a firewall',
    'kcp member simulate paris',
  ],
  placement: ['kcp placement explain deployment/web -n shop -c acme'],
  'migrate-store': [
    'kcp migrate-store --root-dir /var/lib/kcp --store postgres --postgres-servers db.example.com:5432 --postgres-password-file password',
    'kcp migrate-store --root-dir /var/lib/kcp --store etcd --etcd-servers https://10.0.0.1:2379 --back',
  ],
  'seal-key': ['kcp seal-key add', 'kcp seal-key use', 'kcp seal-key reseal', 'kcp seal-key drop'],
  start: [
    'kcp start --demo                # see it: everything in a temporary directory',
    'kcp start --root-dir .run/kcp',
    'kcp start --root-dir /var/lib/kcp --bind-address 0.0.0.0 --advertise-address kcp.example.com',
    'kcp start --root-dir /var/lib/kcp --store etcd --etcd-servers https://10.0.0.1:2379',
    'kcp start --root-dir /var/lib/kcp --store postgres --postgres-servers db.example.com:5432 --postgres-password-file password',
  ],
  create: [
    'kcp create acme',
    'kcp create dev --parent acme',
    'kcp create acme --owner User:alice Group:acme-admins',
    'kcp create pr-42 --from acme    # a copy, for a test',
    'kcp create acme-2 --snapshot before-upgrade',
    'kcp create acme-2 --from acme --volumes --store main',
  ],
  snapshot: [
    'kcp snapshot create acme -o acme.kcp.tar.zst',
    'kcp snapshot verify acme.kcp.tar.zst',
    'kcp snapshot restore acme.kcp.tar.zst --as acme-2',
  ],
  transfer: [
    'kcp transfer acme --to other/admin.kubeconfig',
    'kcp transfer acme --to host.kubeconfig --to-context eu',
    'kcp transfer acme --to other/admin.kubeconfig --abort',
  ],
  backup: [
    'kcp backup -o /backup/monday',
    'kcp backup -o /backup/monday --recipient age1...',
    'kcp backup -o s3://backups/monday    # with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_ENDPOINT_URL',
  ],
  restore: ['kcp restore /backup/monday', 'kcp restore /backup/monday --identity key.txt'],
  'snapshot create': [
    'kcp snapshot create acme',
    'kcp snapshot create acme --recipient age1... -o acme.kcp.tar.zst.age',
    'kcp snapshot create acme -o - | ssh store "cat > acme.kcp.tar.zst"',
    'kcp snapshot create acme --store main    # a LogicalClusterSnapshot',
    'kcp snapshot create acme --store main --volumes',
  ],
  'snapshot list': ['kcp snapshot list', 'kcp snapshot list /backup', 'kcp snapshot list s3://backups/kcp'],
  'snapshot verify': [
    'kcp snapshot verify acme.kcp.tar.zst',
    'kcp snapshot verify acme.kcp.tar.zst.age --identity key.txt',
    'kcp snapshot verify before-upgrade    # a LogicalClusterSnapshot',
  ],
  'snapshot diff': [
    'kcp snapshot diff monday.kcp.tar.zst tuesday.kcp.tar.zst',
    'kcp snapshot diff monday.kcp.tar.zst acme    # what has changed since',
  ],
  'snapshot restore': [
    'kcp snapshot restore acme.kcp.tar.zst --as acme-2',
    'kcp snapshot restore acme.kcp.tar.zst --into acme          # tell what would happen',
    'kcp snapshot restore acme.kcp.tar.zst --into acme --yes',
  ],
  tree: ['kcp tree', 'kcp tree acme'],
  list: ['kcp list', 'kcp list -o wide', 'kcp list -o name'],
  use: [
    'kcp use acme        # kubectl works in acme from now on',
    'kcp use             # list such contexts',
    'kcp use -           # the context before',
  ],
  get: [
    'kcp get deployments -A',
    'kcp get pods -A --clusters acme,beta -l app=web',
    'kcp get pods -A --field-selector status.phase=Pending -w',
    'kcp get members -o wide',
  ],
  connect: ['kcp connect acme                            # a shell', 'kcp connect acme -- kubectl get namespaces'],
  console: [
    'kcp console                 # sign in as the admin of the installation',
    'kcp console acme --open     # as the admin of acme, and of nothing else',
    'kcp console --url https://console.example.com',
  ],
  kubeconfig: [
    'kcp kubeconfig acme > acme.kubeconfig',
    'kcp kubeconfig acme --days 7 > acme.kubeconfig',
    'kcp kubeconfig acme --login > everybody.kubeconfig    # they sign in with the provider of acme',
  ],
  login: [
    'kcp login --oidc-issuer-url https://login.example.com --oidc-client-id kcp',
    'kcp login --oidc-issuer-url https://login.example.com --oidc-client-id kcp --grant-type device-code',
  ],
  access: ['kcp access --kubeconfig hub.kubeconfig    # run by a client, with KUBERNETES_EXEC_INFO set'],
  credential: ['kcp credential acme --root-dir .run/kcp'],
  join: [
    'kcp join east --kubeconfig east.kubeconfig',
    'kcp join east --kubeconfig east.kubeconfig --service-network Flat',
  ],
  'member join': [
    'kcp member join east --kubeconfig east.kubeconfig',
    'kcp member join lab --pull > lab.yaml                   # then, in that cluster: kubectl apply -f lab.yaml',
    'kcp member join lab --pull --approve --token-ttl 15m --http-proxy http://proxy.example.com:3128 > lab.yaml',
    'kcp member join lab --pull --apply --kubeconfig lab.kubeconfig',
  ],
  'member approve': ['kcp member approve lab --show', 'kcp member approve lab'],
  'member revoke': ['kcp member revoke lab'],
  'member simulate': [
    'kcp member simulate paris --root-dir .run/kcp                  # until Ctrl-C',
    'kcp member simulate paris --nodes 5 --node-cpu 16 --region eu --root-dir .run/kcp',
  ],
  sleep: ['kcp sleep acme           # until somebody writes into it', 'kcp sleep acme --hold    # until kcp wake acme'],
  wake: ['kcp wake acme', 'kcp wake acme --hold     # it does not fall asleep any more'],
  cordon: ['kcp cordon east'],
  uncordon: ['kcp uncordon east'],
  drain: ['kcp drain east --dry-run    # what would go where', 'kcp drain east --wait', 'kcp drain east --undo'],
  fence: ['kcp fence east              # it is switched off', 'kcp fence east --undo'],
  adopt: [
    'kcp adopt shop --from old --into acme                  # the plan, and a question',
    'kcp adopt shop --from old --into acme/store --yes --member-kubeconfig old.kubeconfig',
    'kcp adopt shop --from old --into acme --undo',
  ],
  volumes: [
    'kcp volumes                                     # of all logical clusters',
    'kcp volumes -c acme -n shop -o wide',
    'kcp volumes --agree data -c acme -n shop        # what would happen; --yes does it',
  ],
  move: [
    'kcp move deployment/web -n shop --to west --dry-run',
    'kcp move namespace/shop -c acme --to west --wait',
    'kcp move deployment/web -n shop --to any    # kcp chooses',
  ],
  explain: ['kcp explain acme', 'kcp explain deployment/web -n shop -c acme', 'kcp explain member/east'],
  'placement explain': ['kcp placement explain deployment/web -n shop -c acme'],
  usage: [
    'kcp usage',
    'kcp usage acme --since 7d --hourly -o csv',
    'kcp usage --since 30d -o opencost --prices cpu=0.03,memory=0.004,storage=0.0001',
  ],
  audit: [
    'kcp audit acme --since 1h --resource secrets',
    'kcp audit acme -f --user alice --verb create,delete -o json',
    'kcp audit --kubeconfig acme.kubeconfig          # as a user of the logical cluster',
  ],
  top: ['kcp top', 'kcp top members', 'kcp top pods --clusters acme --sort-by memory -w'],
  export: [
    'kcp export widgets.example.com -c platform',
    'kcp export widgets.example.com gears.example.com --name tools',
  ],
  bind: [
    'kcp bind platform:widgets.example.com -c acme --grant',
    'kcp bind platform:tools -c acme --accept secrets.core --reject configmaps.core --accept-admission',
  ],
  crd: ['kcp crd check widgets-v1.yaml widgets-v2.yaml'],
  'crd check': [
    'kcp crd check widgets-v1.yaml widgets-v2.yaml',
    'kcp crd check widgets.example.com widgets-v2.yaml --clusters acme,bob',
    'kcp crd check widgets-v1.yaml widgets-v2.yaml --all-clusters -o json',
  ],
  diagnose: ['kcp diagnose --root-dir .run/kcp', 'kcp diagnose --host-kubeconfig host.kubeconfig'],
  completion: ['source <(kcp completion bash)', 'kcp completion fish | source'],
  version: ['kcp version', 'kcp version -o json'],
  operator: ['kcp operator --kubeconfig host.kubeconfig'],
  apiserver: ['kcp apiserver --kubeconfig host.kubeconfig'],
  gateway: ['kcp gateway --namespace kcp-system'],
  agent: ['kcp agent', 'kcp agent --kubeconfig lab.kubeconfig --health-port 8081'],
  mover: [
    'kcp mover --role source --volume /data --credentials /etc/kcp-mover',
    'kcp mover --role target --volume /dev/volume --block --credentials /etc/kcp-mover --listen 127.0.0.1:8443',
  ],
  unregister: ['kcp unregister --kubeconfig host.kubeconfig'],
  'seal-key add': ['kcp seal-key add --host-kubeconfig host.kubeconfig'],
  'seal-key use': ['kcp seal-key use --host-kubeconfig host.kubeconfig'],
  'seal-key reseal': ['kcp seal-key reseal --host-kubeconfig host.kubeconfig'],
  'seal-key drop': ['kcp seal-key drop --host-kubeconfig host.kubeconfig'],
}

/** A command with its path below `kcp`, such as `member join`. */
export interface CommandAt {
  readonly path: string
  readonly command: Command
}

/** The program, and all commands that the help shows, with those that only have others below them. */
export function commandsWithPaths(command: Command, path: readonly string[] = []): CommandAt[] {
  const below = command
    .createHelp()
    .visibleCommands(command)
    .filter((one) => one.name() !== 'help')
  return [{ path: path.join(' '), command }, ...below.flatMap((one) => commandsWithPaths(one, [...path, one.name()]))]
}

/** The examples of a command. */
export function examplesOf(path: string): readonly string[] {
  return examples[path] ?? []
}

/** Puts the examples before the help of every command. */
export function addExamples(program: Command): void {
  for (const { path, command } of commandsWithPaths(program)) {
    const lines = examplesOf(path)
    if (lines.length > 0) command.addHelpText('before', `Examples:\n${lines.map((line) => `  ${line}`).join('\n')}\n`)
  }
}
