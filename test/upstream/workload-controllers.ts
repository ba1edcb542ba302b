// Turns a logical cluster without members into a plain cluster: Kubernetes' own controllers and scheduler, and kwok,
// which simulates nodes. Each of them only gets a kubeconfig.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import {
  ensurePrograms,
  kubectl,
  repositoryRoot,
  runCommand,
  startProcess,
  type ManagedProcess,
} from '#test/support/index.ts'

/** The controllers of kube-controller-manager that a logical cluster does not run itself. */
const controllers = [
  'cronjob-controller',
  'daemonset-controller',
  'deployment-controller',
  'disruption-controller',
  'endpoints-controller',
  'endpointslice-controller',
  'endpointslice-mirroring-controller',
  'ephemeral-volume-controller',
  'horizontal-pod-autoscaler-controller',
  'job-controller',
  'node-lifecycle-controller',
  'persistentvolume-binder-controller',
  'persistentvolume-protection-controller',
  'persistentvolumeclaim-protection-controller',
  'pod-garbage-collector-controller',
  'replicaset-controller',
  'replicationcontroller-controller',
  'statefulset-controller',
  'taint-eviction-controller',
  'ttl-after-finished-controller',
]

/** Long leases, because a program that loses its lease on a busy machine exits. */
const lease = ['--leader-elect-lease-duration=120s', '--leader-elect-renew-deadline=100s']

/** Stages of kwok: the simulated life cycles of nodes and pods. */
const stageFolders = ['node/fast', 'node/heartbeat-with-lease', 'pod/fast']

export interface WorkloadControllers extends AsyncDisposable {
  readonly processes: readonly ManagedProcess[]
}

export interface WorkloadOptions {
  readonly kubeconfig: string
  /** Suffix of log files; one per cluster. */
  readonly label: string
  /** Directory of the logs. */
  readonly dir: string
  /** Number of nodes simulated by kwok. */
  readonly nodes: number
  /** Whether the scheduler runs; without it pods stay Pending. By default, where kwok simulates nodes. */
  readonly scheduler?: boolean
}

/** Starts them and resolves when the nodes are Ready. They end on disposal; the nodes stay. */
export async function startWorkloadControllers({
  kubeconfig,
  label,
  dir,
  nodes,
  scheduler = nodes > 0,
}: WorkloadOptions): Promise<WorkloadControllers> {
  const programs = await ensurePrograms(['kube-controller-manager', 'kube-scheduler'])
  mkdirSync(dir, { recursive: true })
  await using stack = new AsyncDisposableStack()
  const processes: ManagedProcess[] = []
  const start = async (program: keyof typeof programs, args: readonly string[]): Promise<void> => {
    const name = `${label}-${program}`
    const command = programs[program]
    const logFile = join(dir, `${name}.log`)
    processes.push(
      stack.use(await startProcess({ name, command, args: [`--kubeconfig=${kubeconfig}`, ...args], logFile })),
    )
  }
  const common = ['--leader-elect=true', ...lease, '--secure-port=0', '--profiling=false']
  await start('kube-controller-manager', [
    ...common,
    `--controllers=${controllers.join(',')}`,
    '--use-service-account-credentials=true',
    '--kube-api-qps=100',
    '--kube-api-burst=200',
    // Without nodes, a Node without a kubelet is marked at once instead of after a minute.
    ...(nodes === 0 && !scheduler ? ['--node-startup-grace-period=1s'] : []),
  ])
  if (nodes > 0) {
    const kwok = stack.use(await startKwok({ kubeconfig, label, dir, nodes }))
    processes.push(kwok.process)
  }
  if (scheduler) await start('kube-scheduler', common)
  const owned = stack.move()
  return { processes, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

export interface Kwok extends AsyncDisposable {
  readonly process: ManagedProcess
}

/** Starts kwok with so many simulated nodes, and resolves when they are Ready. The nodes stay after it ends. */
export async function startKwok({ kubeconfig, label, dir, nodes }: Omit<WorkloadOptions, 'scheduler'>): Promise<Kwok> {
  const { kwok } = await ensurePrograms(['kwok'])
  const stages = join(dir, `${label}-stages.yaml`)
  writeFileSync(stages, await kwokStages())
  for (let index = 1; index <= nodes; index++)
    await kubectl(kubeconfig, ['create', '-f', '-'], { input: kwokNode(`kwok-${index}`) })
  const args = ['--manage-all-nodes=true', `--config=${stages}`, '--node-lease-duration-seconds=40']
  const process = await startProcess({
    name: `${label}-kwok`,
    command: kwok,
    args: [`--kubeconfig=${kubeconfig}`, ...args],
    logFile: join(dir, `${label}-kwok.log`),
  })
  await kubectl(kubeconfig, ['wait', '--for=condition=Ready', 'nodes', '--all', '--timeout=60s'])
  return { process, [Symbol.asyncDispose]: () => process[Symbol.asyncDispose]() }
}

/** A node for kwok to simulate, with room for 110 pods unless told otherwise. */
export function kwokNode(name: string, room: Readonly<Record<string, string>> = {}): KubeObject {
  const amounts = { cpu: '32', memory: '64Gi', pods: '110', 'ephemeral-storage': '100Gi', ...room }
  const labels = { 'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64' }
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels },
    status: { allocatable: amounts, capacity: amounts },
  }
}

/** The stages from the pinned kwok module, as YAML. */
export async function kwokStages(): Promise<string> {
  const cwd = join(repositoryRoot, 'test', 'programs', 'kwok')
  const env = { GOWORK: 'off', GOFLAGS: '-mod=readonly' }
  const options = { cwd, env, timeoutMs: 10 * 60_000 }
  await runCommand('go', ['mod', 'download', 'sigs.k8s.io/kwok'], options)
  const { stdout } = await runCommand('go', ['list', '-m', '-f', '{{.Dir}}', 'sigs.k8s.io/kwok'], options)
  const files = stageFolders.flatMap((folder) => {
    const dir = join(stdout.trim(), 'kustomize', 'stage', folder)
    const names = readdirSync(dir).filter((name) => name.endsWith('.yaml') && name !== 'kustomization.yaml')
    return names.map((name) => join(dir, name))
  })
  return files.map((file) => readFileSync(file, 'utf8')).join('\n---\n')
}
