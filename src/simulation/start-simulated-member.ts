// A simulated member: the API server of a plain cluster, with the controllers, nodes and pods of one, in this process.
// It listens on loopback alone.
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { rootClusterName, type ClusterId, type KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { childSignal, timestamp, type ChildSignal } from '#async/index.ts'
import { kubeconfigText } from '#client/index.ts'
import { startControllers } from '#controllers/index.ts'
import { openSqliteStore } from '#store/sqlite/index.ts'
import { createMetrics, type Logger } from '#telemetry/index.ts'
import { createVirtualApi, openPki, rootCluster, type Pki, type VirtualApi } from '#virtualapi/index.ts'
import { startBudgets } from './cluster/budgets.ts'
import { startEndpointSlices } from './cluster/endpoint-slices.ts'
import { Simulation } from './cluster/simulation.ts'
import { startVolumes, storageClassObject } from './cluster/volumes.ts'
import { Kubelet } from './nodes/kubelet.ts'
import { keepNodes, type NodeOptions } from './nodes/nodes.ts'
import { usualTiming, type Timing } from './nodes/programs.ts'
import { startScheduler } from './nodes/scheduler.ts'
import { Network } from './runtime/network.ts'
import { simulatedMembers, type RunningParts } from './pods/simulated-members.ts'
import { systemObjects } from './system-objects.ts'
import { startCronJobs } from './workloads/cron-jobs.ts'
import { startDaemonSets } from './workloads/daemon-sets.ts'
import { startDeployments } from './workloads/deployments.ts'
import { startJobs, startPodRelease } from './workloads/jobs.ts'
import { startReplicaSets } from './workloads/replica-sets.ts'
import { startStatefulSets } from './workloads/stateful-sets.ts'

export interface SimulatedMemberOptions {
  /** Its nodes are called NAME-node-1 and so on. */
  readonly name: string
  /** Directory of its data; created if missing. */
  readonly dir: string
  readonly nodes?: Partial<NodeOptions>
  /** Members with the same network reach each other's pods. Default: one of its own. */
  readonly network?: Network
  readonly timing?: Timing
  /** 0, the default: the system chooses. */
  readonly port?: number
  readonly log: Logger
  readonly signal: AbortSignal
}

export interface SimulatedMember extends AsyncDisposable {
  readonly name: string
  /** An admin's kubeconfig, as `kcp member join` wants it. */
  readonly kubeconfig: string
  readonly isOn: boolean
  /** Turns the member on or off. Off: nothing answers, nothing runs; the data stays. */
  setPower(isOn: boolean): Promise<void>
}

const address = '127.0.0.1'
const certificateDays = 3650
/** How long a member's IP ranges are apart: the second byte of the addresses of pods. */
const [firstSubnet, subnets] = [64, 128]

/** Starts a member and resolves when its nodes are Ready. */
export async function startSimulatedMember(options: SimulatedMemberOptions): Promise<SimulatedMember> {
  const { name, dir, log, signal } = options
  await using stack = new AsyncDisposableStack()
  const store = stack.use(await openSqliteStore({ file: join(dir, 'data', 'member.db') }))
  const pki = await openPki(dir)
  const network = options.network ?? new Network()
  const root = {
    ...rootCluster({ instanceId: store.instanceId, creationTimestamp: timestamp(Date.now()) }),
    isPlain: true as const,
  }
  let parts: RunningParts | undefined
  const api = stack.use(
    await createVirtualApi({
      store,
      pki,
      root,
      members: () => simulatedMembers(() => parts, network),
      log,
      metrics: createMetrics(),
      signal,
    }),
  )
  const member = new PoweredMember({ ...options, network }, { api, pki, onParts: (running) => (parts = running) })
  stack.use(member)
  await member.setPower(true)
  const { certificate: cert, key } = await pki.issueClientCertificate({
    commonName: 'simulated-admin',
    organizations: ['system:masters'],
    realm: root.id,
    days: certificateDays,
  })
  const server = `https://${address}:${member.port}/clusters/${rootClusterName}`
  const owned = stack.move()
  return {
    name,
    kubeconfig: kubeconfigText({ name, server, ca: pki.servingCa, cert, key }),
    get isOn() {
      return member.isOn
    },
    setPower: (isOn) => member.setPower(isOn),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

interface PoweredParts {
  readonly api: VirtualApi
  readonly pki: Pki
  readonly onParts: (parts: RunningParts | undefined) => void
}

/** What ends when the power goes. */
interface Running {
  readonly life: ChildSignal
  readonly simulation: Simulation
  readonly kubelet: Kubelet
  readonly stack: AsyncDisposableStack
}

class PoweredMember implements AsyncDisposable {
  readonly #options: SimulatedMemberOptions & { readonly network: Network }
  readonly #parts: PoweredParts
  /** The change of power that is under way. */
  #changing = Promise.resolve()
  #running: Running | undefined
  #port: number

  constructor(options: SimulatedMemberOptions & { readonly network: Network }, parts: PoweredParts) {
    this.#options = options
    this.#parts = parts
    this.#port = options.port ?? 0
  }

  get port(): number {
    return this.#port
  }

  get isOn(): boolean {
    return this.#running !== undefined
  }

  async setPower(isOn: boolean): Promise<void> {
    const change = this.#changing.then(async () => {
      if (isOn && this.#running === undefined) await this.#start()
      else if (!isOn && this.#running !== undefined) await this.#stop(this.#running)
    })
    this.#changing = change.catch(() => undefined)
    await change
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.setPower(false)
  }

  async #start(): Promise<void> {
    const { api, pki, onParts } = this.#parts
    const { log, signal, name, network, timing = usualTiming } = this.#options
    const life = childSignal(signal)
    await using stack = new AsyncDisposableStack()
    stack.defer(() => life[Symbol.dispose]())
    stack.defer(() => life.abort(new DOMException('the simulated member is off', 'AbortError')))
    stack.use(await startControllers(controllersOptions({ api, pki, log, signal: life.signal })))
    // Quotas, policies and webhooks of the cluster apply to its controllers, as in any cluster.
    const transport = api.loopbackOf(rootOf(api).id, 'system:kube-controller-manager')
    const simulation = new Simulation({ transport, basePath: `/clusters/${rootClusterName}`, log, signal: life.signal })
    await simulation.synced()
    const nodes = nodesOf(this.#options)
    await keepNodes(simulation, name, nodes)
    const kubelet = new Kubelet(simulation, { member: name, nodes, network, timing })
    startAll(simulation, kubelet)
    onParts({ simulation, kubelet })
    for (const object of [storageClassObject(), ...systemObjects()]) await ensure(simulation, object)
    const certificate = await pki.servingCertificate([address])
    const listener = stack.use(await api.listen({ host: address, port: this.#port, ...certificate }))
    this.#port = listener.port
    this.#running = { life, simulation, kubelet, stack: stack.move() }
  }

  async #stop({ life, simulation, kubelet, stack }: Running): Promise<void> {
    this.#running = undefined
    this.#parts.onParts(undefined)
    kubelet.halt()
    life.abort(new DOMException('the simulated member is off', 'AbortError'))
    await simulation.ended()
    await stack.disposeAsync()
  }
}

/** The only logical cluster of the server, which is the member. */
function rootOf({ directory }: VirtualApi): { readonly id: ClusterId } {
  const [root] = directory.all()
  if (root === undefined) throw new Error('a simulated member has one cluster')
  return root
}

function nodesOf({ name, nodes }: SimulatedMemberOptions): NodeOptions {
  const subnet = firstSubnet + (createHash('sha256').update(name).digest().readUInt16BE(0) % subnets)
  return { count: 2, cpu: '4', memory: '8Gi', pods: 110, region: name, subnet, ...nodes }
}

function controllersOptions({
  api,
  pki,
  log,
  signal,
}: Pick<PoweredParts, 'api' | 'pki'> & Pick<SimulatedMemberOptions, 'log' | 'signal'>): Parameters<
  typeof startControllers
>[0] {
  return {
    cluster: () => api.client(rootClusterName, { userAgent: 'kube-controller-manager' }),
    rootCa: pki.servingCa,
    signClientRequest: ({ clusterId: _, ...request }) => pki.signClientRequest({ ...request, realm: rootOf(api).id }),
    graph: api.graph,
    log,
    signal,
  }
}

function startAll(simulation: Simulation, kubelet: Kubelet): void {
  startReplicaSets(simulation, 'replicasets')
  startReplicaSets(simulation, 'replicationcontrollers')
  startDeployments(simulation)
  startStatefulSets(simulation)
  startDaemonSets(simulation)
  startJobs(simulation)
  startPodRelease(simulation)
  startCronJobs(simulation)
  startEndpointSlices(simulation)
  startVolumes(simulation)
  startBudgets(simulation)
  startScheduler(simulation)
  kubelet.start()
}

const paths: Readonly<Record<string, { group: string; version: string; resource: string }>> = {
  StorageClass: { group: 'storage.k8s.io', version: 'v1', resource: 'storageclasses' },
  DaemonSet: { group: 'apps', version: 'v1', resource: 'daemonsets' },
  Deployment: { group: 'apps', version: 'v1', resource: 'deployments' },
}

async function ensure(simulation: Simulation, object: KubeObject): Promise<void> {
  const gvr = paths[object.kind]
  if (gvr === undefined) throw new Error(`${object.kind} is not made in simulated members`)
  await simulation
    .client()
    .create(gvr, object, { signal: simulation.signal })
    .catch((error: unknown) => {
      if (!isStatusError(error, 'AlreadyExists')) throw error
    })
}
