// A real node in a network namespace of its own: containerd, kubelet, kube-proxy, and CoreDNS as a process.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ClusterAddresses } from './address-plan.ts'
import { runCommand } from './command.ts'
import { type ControlPlane } from './control-plane.ts'
import { kubectl } from './kubectl.ts'
import { makeNodeNamespace, namespacePath } from './network.ts'
import { nodeImages, pauseImage } from './node-images.ts'
import { startProcess } from './process.ts'
import { ensurePrograms } from './programs.ts'
import { type Run } from './run.ts'
import { settingBefore } from './run-record.ts'
import { cgroupHierarchies, cniPluginDir, systemProgram } from './system-packages.ts'
import { waitFor } from './wait-for.ts'

export interface NodeSpec {
  cluster: string
  index: number
  dir: string
  run: Run
  addresses: ClusterAddresses
  flags: { kubelet?: readonly string[]; 'kube-proxy'?: readonly string[] }
  /** Resolves once the API serves; parts that do not need it start earlier. */
  controlPlane: Promise<Pick<ControlPlane, 'ca' | 'kubeconfig' | 'kubeconfigFor' | 'processes' | 'get'>>
  signal?: AbortSignal | undefined
}

export interface ClusterNode {
  name: string
  /** Its address on the run's bridge. */
  address: string
  podCidr: string
  /** Makes the images of a docker-archive tar (see image-archive.ts) available to pods. */
  importImages(archive: string): Promise<void>
  /** The prefix of a command that has to run in the node's network namespace. */
  enter: readonly string[]
  /** Runs a program in the node's network namespace. */
  run(command: string, args: readonly string[]): Promise<{ stdout: string }>
}

/** Starts the node and resolves when it is Ready and cluster DNS answers. */
export async function startNode(spec: NodeSpec): Promise<ClusterNode> {
  const { cluster, index, run, addresses, signal, flags } = spec
  const dir = join(spec.dir, 'node')
  const name = `${cluster}-node`
  const programs = await ensurePrograms(['kubelet', 'kube-proxy', 'coredns'], { signal })
  for (const part of ['cni', 'root', 'state', 'log', 'pods']) mkdirSync(join(dir, part), { recursive: true })
  const namespace = await makeNodeNamespace(run, cluster, index)
  const cgroup = `kcp-${run.id}-${cluster}`
  const socket = join(dir, 'containerd.sock')
  run.add({ type: 'cgroup', name: cgroup, scope: cluster })
  makeCgroup(cgroup)
  for (const file of [...kubeletSettings, inotifyLimit])
    run.add({ type: 'sysctl', file, before: settingBefore(file), scope: cluster })
  if (Number(readFileSync(inotifyLimit, 'utf8')) < inotifyInstances)
    writeFileSync(inotifyLimit, `${inotifyInstances}\n`)
  run.add({ type: 'containers', dir, cniNetwork: namespace, scope: cluster })
  // Not `ip netns exec`: that mounts a fresh /sys, without the cgroups.
  const inside = [`--net=${namespacePath(namespace)}`]
  const start = async (
    title: string,
    command: string,
    args: string[],
    ready: () => Promise<boolean>,
  ): Promise<void> => {
    const process = await startProcess(
      {
        name: title,
        command: systemProgram('nsenter'),
        args: [...inside, command, ...args],
        cwd: dir,
        logFile: join(spec.dir, 'log', `${title}.log`),
        ready,
      },
      { run, scope: cluster, signal },
    )
    ;(await spec.controlPlane).processes.set(title, process)
  }
  const ctr = (...args: string[]): Promise<unknown> =>
    runCommand(systemProgram('ctr'), ['--address', socket, '--namespace', 'k8s.io', ...args], { signal })
  const importImages = async (archive: string): Promise<void> => {
    await ctr('images', 'import', archive)
  }

  writeFileSync(join(dir, 'containerd.toml'), containerdConfig(dir, socket))
  writeFileSync(join(dir, 'cni', '10-pods.conflist'), cniConfig(namespace, addresses.podCidr, dir))
  const containerd = start('containerd', systemProgram('containerd'), ['-c', 'containerd.toml'], async () => {
    await ctr('version')
    return true
  })
  // A failed control plane is reported by its own promise; here it must only not count as unhandled.
  const images = Promise.all([nodeImages({ signal }), containerd]).then(([archive]) => importImages(archive))
  images.catch(() => undefined)
  const api = await spec.controlPlane
  await containerd

  const identity = { commonName: `system:node:${name}`, organizations: ['system:nodes'] }
  const kubeletKubeconfig = await api.kubeconfigFor(join(dir, 'kubelet.kubeconfig'), identity)
  const serving = await api.ca.issue({ commonName: name, hosts: [addresses.node, name] })
  writeFileSync(join(dir, 'kubelet.crt'), serving.certificate)
  writeFileSync(join(dir, 'kubelet.key'), serving.key, { mode: 0o600 })
  writeFileSync(
    join(dir, 'kubelet.json'),
    kubeletConfig({ dir, socket, cgroup, ca: join(spec.dir, 'pki', 'ca.crt'), addresses }),
  )
  const kubeletArgs = [
    '--config=kubelet.json',
    `--kubeconfig=${kubeletKubeconfig}`,
    `--root-dir=${join(dir, 'kubelet')}`,
    `--cert-dir=${join(dir, 'kubelet')}`,
    `--hostname-override=${name}`,
    `--node-ip=${addresses.node}`,
    ...(flags.kubelet ?? []),
  ]
  const proxyIdentity = { commonName: 'system:kube-proxy' }
  const proxyKubeconfig = await api.kubeconfigFor(join(dir, 'kube-proxy.kubeconfig'), proxyIdentity)
  writeFileSync(join(dir, 'kube-proxy.json'), proxyConfig(proxyKubeconfig, name, addresses.podCidr))
  writeFileSync(join(dir, 'Corefile'), corefile(addresses.node, api.kubeconfig))
  await Promise.all([
    start('kubelet', programs.kubelet, kubeletArgs, async () => isReady(await api.get(`/api/v1/nodes/${name}`))),
    start(
      'kube-proxy',
      programs['kube-proxy'],
      ['--config=kube-proxy.json', ...(flags['kube-proxy'] ?? [])],
      async () => {
        await runCommand(systemProgram('curl'), ['-fsS', '-m', '2', `http://${addresses.node}:10256/healthz`])
        return true
      },
    ),
    start(
      'coredns',
      programs.coredns,
      ['-conf', 'Corefile'],
      async () => (await fetch(`http://${addresses.node}:8181/ready`)).ok,
    ),
    kubectl(api.kubeconfig, ['create', '--validate=false', '-f', '-'], { input: dnsService(addresses), signal }),
    images,
  ])
  await waitFor(() => api.get('/api/v1/namespaces/default/serviceaccounts/default'), {
    what: `the default ServiceAccount of "${cluster}", without which no pod is admitted`,
    deadlineMs: 30_000,
    signal,
  })
  return {
    name,
    address: addresses.node,
    podCidr: addresses.podCidr,
    importImages,
    enter: [systemProgram('nsenter'), ...inside],
    run: (command, args) => runCommand(systemProgram('nsenter'), [...inside, command, ...args]),
  }
}

/** Kernel settings of the whole machine that kubelet changes. */
const kubeletSettings = ['vm/overcommit_memory', 'vm/panic_on_oom', 'kernel/panic', 'kernel/panic_on_oops']
  .map((name) => join('/proc/sys', name))
  .filter((file) => existsSync(file))

/**
 * How many programs of a user may watch files. A kubelet ends where a few dozen API servers have used up the usual 128.
 */
const inotifyLimit = '/proc/sys/fs/inotify/max_user_instances'
const inotifyInstances = 1024

/** The root of all pods' cgroups, which kubelet expects to exist. */
function makeCgroup(name: string): void {
  for (const hierarchy of cgroupHierarchies()) {
    const dir = join(hierarchy, name)
    mkdirSync(dir, { recursive: true })
    // A new v1 cpuset is empty, and no process may enter an empty one.
    for (const file of ['cpuset.mems', 'cpuset.cpus']) {
      if (existsSync(join(dir, file)) && hierarchy.endsWith('cpuset')) {
        writeFileSync(join(dir, file), readFileSync(join(hierarchy, file)))
      }
    }
  }
}

function isReady(node: unknown): boolean {
  const { status } = node as { status?: { conditions?: { type: string; status: string }[] } }
  return status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') === true
}

/** Pods may listen on any port whoever runs them, as containerd 2 has it by default. */
const containerdConfig = (dir: string, socket: string): string => `version = 2
root = "${dir}/root"
state = "${dir}/state"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"]
[grpc]
  address = "${socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${pauseImage}"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  enable_unprivileged_ports = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${cniPluginDir()}"
    conf_dir = "${dir}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      Root = "${dir}/state/runc"
[plugins."io.containerd.internal.v1.opt"]
  path = "${dir}/opt"
`

function cniConfig(network: string, podCidr: string, dir: string): string {
  const ipam = {
    type: 'host-local',
    dataDir: `${dir}/ipam`,
    ranges: [[{ subnet: podCidr }]],
    routes: [{ dst: '0.0.0.0/0' }],
  }
  // Routed, with a veth per pod: on a bridge, replies between pods of one node bypass NAT unless br_netfilter is
  // loaded.
  const plugins = [
    { type: 'ptp', ipMasq: false, ipam },
    { type: 'portmap', capabilities: { portMappings: true } },
  ]
  return JSON.stringify({ cniVersion: '1.0.0', name: network, plugins })
}

function kubeletConfig({
  dir,
  socket,
  cgroup,
  ca,
  addresses,
}: {
  dir: string
  socket: string
  cgroup: string
  ca: string
  addresses: ClusterAddresses
}): string {
  return JSON.stringify({
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    authentication: { anonymous: { enabled: false }, webhook: { enabled: true }, x509: { clientCAFile: ca } },
    authorization: { mode: 'Webhook' },
    tlsCertFile: `${dir}/kubelet.crt`,
    tlsPrivateKeyFile: `${dir}/kubelet.key`,
    cgroupDriver: 'cgroupfs',
    cgroupRoot: `/${cgroup}`,
    cgroupsPerQOS: true,
    enforceNodeAllocatable: [],
    failCgroupV1: false,
    failSwapOn: false,
    containerRuntimeEndpoint: `unix://${socket}`,
    podLogsDir: `${dir}/pods`,
    volumePluginDir: `${dir}/volume-plugins`,
    clusterDNS: [addresses.dnsService],
    clusterDomain: 'cluster.local',
    resolvConf: '',
    // The disk belongs to the whole machine: files of other programs must not evict our pods.
    evictionHard: { 'nodefs.available': '1%', 'imagefs.available': '1%', 'memory.available': '100Mi' },
    imageGCHighThresholdPercent: 100,
    serializeImagePulls: false,
    syncFrequency: '10s',
    enableDebuggingHandlers: true,
  })
}

function proxyConfig(kubeconfig: string, name: string, podCidr: string): string {
  return JSON.stringify({
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    mode: 'iptables',
    clusterCIDR: podCidr,
    clientConnection: { kubeconfig },
    hostnameOverride: name,
    conntrack: { maxPerCore: 0, min: 0 },
    iptables: { minSyncPeriod: '100ms' },
  })
}

const corefile = (address: string, kubeconfig: string): string => `.:53 {
  bind ${address}
  errors
  ready ${address}:8181
  kubernetes cluster.local in-addr.arpa {
    kubeconfig ${kubeconfig}
    pods insecure
  }
  cache 2
}
`

function dnsService({ node, dnsService: clusterIP }: ClusterAddresses): object {
  const ports = [
    { name: 'dns', port: 53, protocol: 'UDP' },
    { name: 'dns-tcp', port: 53, protocol: 'TCP' },
  ]
  const namespace = 'kube-system'
  const labels = { 'kubernetes.io/service-name': 'kube-dns' }
  return {
    apiVersion: 'v1',
    kind: 'List',
    items: [
      { apiVersion: 'v1', kind: 'Service', metadata: { name: 'kube-dns', namespace }, spec: { clusterIP, ports } },
      {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: { name: 'kube-dns-node', namespace, labels },
        addressType: 'IPv4',
        endpoints: [{ addresses: [node], conditions: { ready: true } }],
        ports,
      },
    ],
  }
}
