// Many member clusters on one machine: each a kube-apiserver, a kube-controller-manager with the controllers that
// Deployments need, a kube-scheduler, and a node that kwok simulates. So that 50 of them fit on two cores and in 16
// GiB, they lack what kcp does not see: one etcd keeps them all, under a prefix each, and does not wait for the disk;
// the API groups that neither kcp nor the controllers use are off; no priority and fairness, compaction, polling of
// etcd, lease of the API server's identity, check of its caches against etcd, or snapshots for lists from older
// revisions; each program runs on one thread and collects garbage early. Watches, their caches, webhooks, policies and
// RBAC are as usual.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { setPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { createClient, httpTransport, loadKubeconfig, type KubeClient, type Kubeconfig } from '#client/index.ts'
import { clusterAddresses } from '#test/support/address-plan.ts'
import { CertificateAuthority, newSigningKey } from '#test/support/certificates.ts'
import { apiserverArgs, etcdArgs } from '#test/support/control-plane-args.ts'
import {
  acquireRun,
  ensurePrograms,
  freePort,
  startProcess,
  waitFor,
  writeKubeconfig,
  type ManagedProcess,
} from '#test/support/index.ts'
import { kwokNode, kwokStages } from '#test/upstream/workload-controllers.ts'
import { cpuSeconds, residentMiB } from './process-usage.ts'

export interface FleetMember {
  readonly name: string
  /** Path of the admin's kubeconfig. */
  readonly kubeconfig: string
  readonly admin: Kubeconfig
  /** As admin. */
  readonly client: KubeClient
  readonly apiserver: ManagedProcess
  /** The text of the API server's metrics. */
  metrics(signal: AbortSignal): Promise<string>
}

export interface MemberFleet extends AsyncDisposable {
  readonly members: readonly FleetMember[]
  /** Anonymous memory of all processes: the pages of their programs are shared. */
  anonymousMiB(): number
  /** Of all processes since they started. */
  cpuSeconds(): number
}

export interface MemberFleetOptions {
  readonly count: number
  /** Pods that a member can run. Default 2000. */
  readonly pods?: number
  /** Whether they have controllers, a scheduler and a node. Default true; without them pods never run. */
  readonly runsPods?: boolean
  readonly signal: AbortSignal
  readonly say: (line: string) => void
}

/** Members that start at a time: each takes two seconds of processor time. */
const startsAtOnce = 4
/**
 * Against 40 and two threads this saves 25 of 180 MiB and takes 2.7 instead of 2.4 s of processor time for a start. At
 * 10 a start takes 3.2 s, for less than 10 MiB more.
 */
const sparing = { GOGC: '20', GOMAXPROCS: '1' }

/** The APIs that kcp and the controllers use. */
const apis = [
  ...['v1', 'apps/v1', 'batch/v1', 'networking.k8s.io/v1', 'autoscaling/v2', 'policy/v1', 'discovery.k8s.io/v1'],
  ...['rbac.authorization.k8s.io/v1', 'admissionregistration.k8s.io/v1', 'storage.k8s.io/v1', 'node.k8s.io/v1'],
  ...['scheduling.k8s.io/v1', 'authentication.k8s.io/v1', 'authorization.k8s.io/v1', 'events.k8s.io/v1'],
  ...['coordination.k8s.io/v1', 'apiextensions.k8s.io/v1', 'apiregistration.k8s.io/v1', 'certificates.k8s.io/v1'],
  'resource.k8s.io/v1',
]

/** Features of kube-apiserver that are off: no client sees them, and they take time or memory while nothing happens. */
const unseenFeatures = [
  'APIServerIdentity',
  'DetectCacheInconsistency',
  'ListFromCacheSnapshot',
  'SizeBasedListCostEstimate',
]

const controllers = [
  'deployment-controller',
  'endpointslice-controller',
  'garbage-collector-controller',
  'namespace-controller',
  'replicaset-controller',
  'root-ca-certificate-publisher-controller',
  'serviceaccount-controller',
]

/** Resolves when all members are ready for kcp to join them, and their nodes are Ready. */
export async function startMemberFleet(options: MemberFleetOptions): Promise<MemberFleet> {
  const { count, signal, say } = options
  await using stack = new AsyncDisposableStack()
  const { run, release } = await acquireRun({ signal })
  stack.defer(release)
  const dir = mkdtempSync(join(tmpdir(), 'kcp-bench-members-'))
  stack.defer(() => rmSync(dir, { recursive: true, force: true }))
  const { runsPods = true } = options
  const servers = await ensurePrograms(['etcd', 'kube-apiserver'], { signal })
  const runners = runsPods && (await ensurePrograms(['kube-controller-manager', 'kube-scheduler', 'kwok'], { signal }))
  const programs: Partial<Record<Program, string>> = { ...servers, ...runners }
  const stages = join(dir, 'stages.yaml')
  if (runsPods) writeFileSync(stages, await kwokStages())
  const address = (index: number): string => clusterAddresses(run.record.slot, index).loopback
  const pki = await writePki(
    join(dir, 'pki'),
    Array.from({ length: count }, (_, index) => address(index)),
  )
  const processes: ManagedProcess[] = []
  const start: Start = async (name, program, args, ready) => {
    const started = stack.use(
      await startProcess(
        {
          name,
          command: programs[program] ?? '',
          args,
          env: sparing,
          cwd: dir,
          logFile: join(dir, 'log', `${name}.log`),
          ...(ready && { ready }),
          readyDeadlineMs: 120_000,
        },
        { run, signal },
      ),
    )
    processes.push(started)
    prioritize(started.pid, program === 'etcd' ? etcdPriority : memberPriority)
    return started
  }
  const etcd = await startEtcd(start, address(0))
  const members: FleetMember[] = []
  const began = performance.now()
  const indexes = Array.from({ length: count }, (_, index) => index).values()
  let started = 0
  const startSome = async (): Promise<void> => {
    for (const index of indexes) {
      const parts = { index, address: address(index), dir, stages, etcd, pki, stack }
      members[index] = await startMember(parts, options, start)
      started++
      if (started % 10 === 0) say(`${started} members run after ${Math.round((performance.now() - began) / 1000)} s`)
    }
  }
  await Promise.all(Array.from({ length: startsAtOnce }, startSome))
  const owned = stack.move()
  const pids = (): number[] => processes.filter(({ running }) => running).map(({ pid }) => pid)
  return {
    members,
    anonymousMiB: () => residentMiB(pids(), 'RssAnon'),
    cpuSeconds: () => cpuSeconds(pids()),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

/**
 * Members run on machines of their own. Here they share the processor with kcp and this program, and Linux gives each
 * session (autogroup, sched(7)) an equal part of it: one of two hundred would be left to kcp, and one to the etcd that
 * keeps them all.
 */
function prioritize(pid: number, niceness: number): void {
  try {
    writeFileSync(`/proc/${pid}/autogroup`, String(niceness))
  } catch {
    // There are no such groups, or a higher priority is not allowed.
    if (niceness > 0) setPriority(pid, niceness)
  }
}

const memberPriority = 19
const etcdPriority = -5

type Program = 'etcd' | 'kube-apiserver' | 'kube-controller-manager' | 'kube-scheduler' | 'kwok'
type Start = (
  name: string,
  program: Program,
  args: readonly string[],
  ready?: () => Promise<boolean>,
) => Promise<ManagedProcess>

async function startEtcd(start: Start, address: string): Promise<string> {
  const client = `http://${address}:${await freePort(address)}`
  const peer = `http://${address}:${await freePort(address)}`
  const isHealthy = async (): Promise<boolean> => {
    const response = await fetch(`${client}/health`).catch(() => undefined)
    return response?.ok === true
  }
  await start('etcd', 'etcd', etcdArgs({ client, peer, durable: false }), isHealthy)
  return client
}

interface Pki {
  readonly ca: CertificateAuthority
  readonly dir: string
}

/**
 * One authority, serving certificate and signing key for all: they are on addresses of their own, and nobody confuses
 * them.
 */
async function writePki(dir: string, hosts: readonly string[]): Promise<Pki> {
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const put = (file: string, text: string): void => writeFileSync(join(dir, file), text, { mode: 0o600 })
  const ca = await CertificateAuthority.create('members-ca')
  const server = await ca.issue({ commonName: 'kube-apiserver', hosts })
  const { privateKey, publicKey } = await newSigningKey()
  put('ca.crt', ca.certificate)
  put('server.crt', server.certificate)
  put('server.key', server.key)
  put('service-accounts.key', privateKey)
  put('service-accounts.pub', publicKey)
  return { ca, dir }
}

interface MemberParts {
  readonly index: number
  readonly address: string
  readonly dir: string
  /** The file of kwok's stages. */
  readonly stages: string
  readonly etcd: string
  readonly pki: Pki
  readonly stack: AsyncDisposableStack
}

const nodes = { group: '', version: 'v1', resource: 'nodes' } as const
const namespaces = { group: '', version: 'v1', resource: 'namespaces' } as const
const bindings = { group: 'rbac.authorization.k8s.io', version: 'v1', resource: 'clusterrolebindings' } as const

async function startMember(
  { index, address, dir, stages, etcd, pki, stack }: MemberParts,
  { pods = 2000, runsPods = true, signal }: MemberFleetOptions,
  start: Start,
): Promise<FleetMember> {
  const name = `member-${String(index).padStart(2, '0')}`
  const port = await freePort(address)
  const kubeconfig = join(dir, `${name}.kubeconfig`)
  const admin = await pki.ca.issue({ commonName: 'admin', organizations: ['system:masters'] })
  writeKubeconfig(kubeconfig, { name, server: `https://${address}:${port}`, ca: pki.ca.certificate, client: admin })
  const config = await loadKubeconfig({ file: kubeconfig }, { trusted: true })
  const transport = stack.use(httpTransport(config))
  const client = createClient(transport)
  // Its last steps: the namespaces, and the built-in roles. kube-controller-manager ends if it is not healthy within 10
  // s.
  const isReady = async (): Promise<boolean> => {
    const found = await Promise.all([
      client.tryGet(namespaces, { name: 'kube-system' }, { signal }),
      client.tryGet(bindings, { name: 'system:discovery' }, { signal }),
      transport.request({ method: 'GET', path: '/healthz', signal }).then(async ({ status, body }) => {
        await Array.fromAsync(body)
        return status === 200 ? status : undefined
      }),
    ]).catch(() => [undefined])
    return found.every((one) => one !== undefined)
  }
  const apiserver = await start(
    `${name}-apiserver`,
    'kube-apiserver',
    memberApiserverArgs(name, address, port, etcd),
    isReady,
  )
  if (runsPods) {
    const common = [`--kubeconfig=${kubeconfig}`, '--leader-elect=false', '--secure-port=0', '--profiling=false']
    const fast = ['--kube-api-qps=500', '--kube-api-burst=1000']
    await start(`${name}-controllers`, 'kube-controller-manager', [
      ...[...common, ...fast, `--controllers=${controllers.join(',')}`],
      '--service-account-private-key-file=pki/service-accounts.key',
      '--root-ca-file=pki/ca.crt',
    ])
    await start(`${name}-scheduler`, 'kube-scheduler', [...common, ...fast])
    await client.create(nodes, kwokNode('kwok-1', { cpu: '400', memory: '1600Gi', pods: String(pods) }), { signal })
    await start(`${name}-kwok`, 'kwok', [
      ...[`--kubeconfig=${kubeconfig}`, '--manage-all-nodes=true', `--config=${stages}`],
      '--node-lease-duration-seconds=200',
    ])
    await waitFor(async () => isNodeReady(await client.get(nodes, { name: 'kwok-1' }, { signal })), {
      what: `the node of ${name}`,
      deadlineMs: 120_000,
      signal,
    })
  }
  const metrics = async (until: AbortSignal): Promise<string> => {
    const { status, body } = await transport.request({ method: 'GET', path: '/metrics', signal: until })
    if (status !== 200) throw new Error(`the metrics of ${name} were not answered: ${status}`)
    return Buffer.concat(await Array.fromAsync(body)).toString()
  }
  return { name, kubeconfig, admin: config, client, apiserver, metrics }
}

function memberApiserverArgs(name: string, address: string, port: number, etcd: string): string[] {
  return [
    ...apiserverArgs({ etcd, address, port, serviceCidr: '10.255.0.0/16' }),
    `--etcd-prefix=/${name}`,
    '--authorization-mode=RBAC',
    `--runtime-config=api/all=false,${apis.map((api) => `${api.includes('/') ? '' : 'api/'}${api}=true`).join(',')}`,
    // A controller that does not run here would take the taint of a new node away.
    '--disable-admission-plugins=TaintNodesByCondition',
    // kcp and its benchmark are the only clients.
    '--enable-priority-and-fairness=false',
    `--feature-gates=${unseenFeatures.map((feature) => `${feature}=false`).join(',')}`,
    '--endpoint-reconciler-type=none',
    '--etcd-compaction-interval=0',
    '--etcd-count-metric-poll-period=0',
    '--etcd-db-metric-poll-interval=0',
  ]
}

function isNodeReady(node: KubeObject): boolean {
  const { conditions = [] } = (node['status'] ?? {}) as { conditions?: { type: string; status: string }[] }
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True')
}
