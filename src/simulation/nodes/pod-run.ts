// One simulated pod on its node: its containers in their order, its status, and the HTTP requests that it answers.
import { setTimeout as later } from 'node:timers/promises'
import { timestamp } from '#async/index.ts'
import type { Condition, Container, ContainerStatus, Pod, PodStatus } from '#simulation/cluster/objects.ts'
import { withCondition } from '#simulation/cluster/pod-facts.ts'
import type { Simulation } from '#simulation/cluster/simulation.ts'
import { configProblem, environmentOf, mountProblem } from '#simulation/runtime/environment.ts'
import type { Host, HttpAnswer, HttpRequest, Network } from '#simulation/runtime/network.ts'
import { chooseEndpoint, parseServiceUrl } from '#simulation/runtime/service-lookup.ts'
import { ContainerRun, type Told } from './container-run.ts'
import type { Timing } from './programs.ts'

export interface PodRunOptions {
  readonly simulation: Simulation
  readonly network: Network
  readonly timing: Timing
  readonly images: Set<string>
  readonly address: string
  readonly hostAddress: string
  readonly member: string
  readonly tell: (told: Told) => void
}

/** How many Services a request may pass through. */
const maxDepth = 5
const mountRetryMs = 1000
/** How long a simulated request takes. */
const requestMs = 2

export class PodRun implements Host {
  readonly uid: string
  readonly address: string
  /** Number of requests that it has answered, and of the last ten seconds. */
  requests = 0
  pod: Pod
  readonly #options: PodRunOptions
  readonly #init: readonly ContainerRun[]
  readonly #main: readonly ContainerRun[]
  readonly #startMs: number
  #stopAtMs: number | undefined
  #isStopped = false
  #mountTold = ''
  #recent: number[] = []

  constructor(pod: Pod, options: PodRunOptions) {
    this.pod = pod
    this.uid = pod.metadata.uid ?? ''
    this.#options = options
    this.address = options.address
    this.#startMs = Date.parse(pod.status?.startTime ?? '') || Date.now()
    const { name = '', namespace = '' } = pod.metadata
    const { restartPolicy = 'Always', initContainers = [], containers } = pod.spec
    const setting = { ...options, restartPolicy, podTitle: `${name}_${namespace}(${this.uid})` }
    const known = new Map((pod.status?.containerStatuses ?? []).map((status) => [status.name, status.restartCount]))
    const run = (container: Container, role: ContainerRun['role']): ContainerRun =>
      new ContainerRun(container, { ...setting, role }, known.get(container.name))
    this.#init = initContainers.map((one) => run(one, one.restartPolicy === 'Always' ? 'sidecar' : 'init'))
    this.#main = containers.map((one) => run(one, 'main'))
  }

  get containers(): readonly ContainerRun[] {
    return [...this.#init, ...this.#main]
  }

  container(name: string): ContainerRun | undefined {
    return this.containers.find(({ container }) => container.name === name)
  }

  /** Whether its containers have ended for good. */
  get hasEnded(): boolean {
    return this.#isStopped || this.#failedInit() || this.#main.every(({ isDone }) => isDone)
  }

  /** Requests per second, over the last ten seconds. */
  get rate(): number {
    const since = Date.now() - 10_000
    this.#recent = this.#recent.filter((at) => at > since)
    return this.#recent.length / 10
  }

  /** Begins to end the pod: it serves until its grace period or its stop is over. */
  terminate(nowMs: number): void {
    if (this.#stopAtMs !== undefined) return
    const { deletionGracePeriodSeconds: grace = 30 } = this.pod.metadata
    const preStop = Math.max(
      0,
      ...this.pod.spec.containers.map(({ lifecycle }) => lifecycle?.preStop?.sleep?.seconds ?? 0),
    )
    const wanted = preStop * 1000 + this.#options.timing.stopMs
    this.#stopAtMs = nowMs + Math.min(Number(grace) * 1000, wanted)
    for (const { container, log, isRunning } of this.containers) {
      if (!isRunning) continue
      log.write('received SIGTERM: finishing the requests that are open')
      this.#options.tell({ type: 'Normal', reason: 'Killing', message: `Stopping container ${container.name}` })
    }
  }

  /** Ends all containers at once. */
  stop(nowMs: number): void {
    this.#isStopped = true
    this.#options.network.remove(this.address, this)
    for (const one of this.containers) one.stop(nowMs)
  }

  /** Brings all containers to the present. Returns the time of the next change, if there is one. */
  advance(nowMs: number): number | undefined {
    if (this.#stopAtMs !== undefined) {
      if (nowMs >= this.#stopAtMs) this.stop(nowMs)
      return this.#isStopped ? undefined : this.#stopAtMs
    }
    const { simulation } = this.#options
    const problem = mountProblem(simulation, this.pod)
    if (problem !== undefined && !this.#main.some(({ hasStarted }) => hasStarted)) {
      if (problem !== this.#mountTold) this.#options.tell({ type: 'Warning', reason: 'FailedMount', message: problem })
      this.#mountTold = problem
      return nowMs + mountRetryMs
    }
    const times: number[] = []
    for (const one of this.#startable(nowMs)) {
      const at = one.advance(nowMs, one.hasStarted ? undefined : configProblem(simulation, this.pod, one.container))
      if (at !== undefined) times.push(at)
    }
    if (this.#main.some(({ isRunning }) => isRunning)) this.#options.network.add(this.address, this)
    // Another container may start now.
    if (this.#startable(nowMs).some(({ isIdle }) => isIdle)) times.push(nowMs + 10)
    return times.length === 0 ? undefined : Math.min(...times)
  }

  #failedInit(): boolean {
    return this.#init.some(({ role, hasFailed }) => role === 'init' && hasFailed)
  }

  /** The containers that may run: init containers one after the other, then all others. */
  #startable(nowMs: number): readonly ContainerRun[] {
    const started: ContainerRun[] = []
    for (const one of this.#init) {
      started.push(one)
      const isPassed = one.role === 'init' ? one.isDone && !one.hasFailed : one.isReady(nowMs)
      if (!isPassed) return started
    }
    return [...started, ...this.#main]
  }

  #isInitialized(nowMs: number): boolean {
    return this.#startable(nowMs).length === this.containers.length
  }

  /** The status, with conditions that others have written. */
  status(nowMs: number): PodStatus {
    const isInitialized = this.#isInitialized(nowMs)
    const waitsFor = this.#init.length > 0 && !isInitialized ? 'PodInitializing' : 'ContainerCreating'
    const main = this.#main.map((one) => one.status(nowMs, waitsFor))
    const init = this.#init.map((one) => one.status(nowMs, waitsFor))
    const { hostAddress } = this.#options
    return {
      phase: this.#phase(isInitialized),
      conditions: this.#conditions({ main, isInitialized }),
      hostIP: hostAddress,
      hostIPs: [{ ip: hostAddress }],
      podIP: this.address,
      podIPs: [{ ip: this.address }],
      startTime: timestamp(this.#startMs),
      ...(init.length > 0 && { initContainerStatuses: init }),
      containerStatuses: main,
    }
  }

  #phase(isInitialized: boolean): string {
    if (this.#failedInit()) return 'Failed'
    if (this.#main.every(({ isDone }) => isDone))
      return this.#main.some(({ hasFailed }) => hasFailed) ? 'Failed' : 'Succeeded'
    return isInitialized && this.#main.every(({ hasStarted }) => hasStarted) ? 'Running' : 'Pending'
  }

  #conditions({ main, isInitialized }: { main: readonly ContainerStatus[]; isInitialized: boolean }): Condition[] {
    const now = timestamp(Date.now())
    const unready = main.filter(({ ready }) => !ready).map(({ name }) => name)
    const isDone = this.hasEnded
    const why = isDone
      ? { reason: 'PodCompleted' }
      : { reason: 'ContainersNotReady', message: `containers with unready status: [${unready.join(' ')}]` }
    const before = this.pod.status?.conditions ?? []
    const gates = (this.pod.spec as { readinessGates?: { conditionType: string }[] }).readinessGates ?? []
    const closed = gates.filter(
      ({ conditionType }) => before.find(({ type }) => type === conditionType)?.status !== 'True',
    )
    const areReady = unready.length === 0
    const closedWhy = {
      reason: 'ReadinessGatesNotReady',
      message: `corresponding condition of pod readiness gate "${closed[0]?.conditionType ?? ''}" does not exist.`,
    }
    const list: readonly (readonly [string, boolean, object])[] = [
      ['PodReadyToStartContainers', !isDone, {}],
      ['Initialized', isInitialized, isInitialized ? {} : { reason: 'ContainersNotInitialized' }],
      ['Ready', areReady && closed.length === 0, areReady && closed.length > 0 ? closedWhy : areReady ? {} : why],
      ['ContainersReady', areReady, areReady ? {} : why],
    ]
    return list.reduce<Condition[]>(
      (all, [type, is, more]) => withCondition(all, { type, status: is ? 'True' : 'False', ...more }, now),
      [...before],
    )
  }

  /** Answers a request; calls the Services that the pod's variables `..._URL` name. */
  async request(port: number, request: HttpRequest): Promise<HttpAnswer> {
    const server = this.#main.find((one) => one.isRunning && listens(one.container, port))
    if (server === undefined) throw new Error(`connect ECONNREFUSED ${this.address}:${port}`)
    await later(requestMs)
    if (this.#isStopped) throw new Error(`read ECONNRESET ${this.address}:${port}`)
    const answer = await this.#answer(server, request)
    this.requests++
    this.#recent.push(Date.now())
    server.log.write(`${request.method} ${request.path} ${answer.status} from ${request.from}`)
    return answer
  }

  async #answer({ container }: ContainerRun, { depth }: HttpRequest): Promise<HttpAnswer> {
    const { simulation, network, member } = this.#options
    const { name = '', namespace = '' } = this.pod.metadata
    const lines = [`hello from pod ${name} in member ${member} (simulated)`]
    const urls = Object.entries(environmentOf(simulation, this.pod, container)).filter(([variable]) =>
      variable.endsWith('_URL'),
    )
    for (const [variable, text] of depth < maxDepth ? urls : []) {
      const url = parseServiceUrl(text)
      if (url === undefined) continue
      try {
        const { address, port } = chooseEndpoint(simulation, { namespace, ...url })
        const asked = { method: 'GET', path: url.path, from: name, depth: depth + 1 }
        const { status, body } = await network.request(address, port, asked)
        if (status >= 500) return { status: 502, body }
        lines.push(`${variable}: ${body.trim()}`)
      } catch (error) {
        return {
          status: 502,
          body: `${variable} (${text}): ${error instanceof Error ? error.message : String(error)}\n`,
        }
      }
    }
    return { status: 200, body: `${lines.join('\n')}\n` }
  }
}

function listens({ ports }: Container, port: number): boolean {
  return ports === undefined || ports.length === 0 || ports.some(({ containerPort }) => containerPort === port)
}
