// Measures the way of workloads into a member and back: `kcp start` and a real control plane whose nodes kwok
// simulates.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { GroupVersionResource, KubeObject } from '#apimachinery/meta/index.ts'
import { createClient, httpTransport, loadKubeconfig, type KubeClient } from '#client/index.ts'
import { kcpProgram, runKcp, startCluster, waitFor } from '#test/support/index.ts'
import { startKwok } from '#test/upstream/workload-controllers.ts'
import { inParallel } from './in-parallel.ts'
import { joinByAgent } from './join-by-agent.ts'
import { startKcpUnderTest } from './kcp-under-test.ts'
import type { Measurement, Numbers } from './measurement.ts'
import { cpuSeconds, residentMiB, withChildren } from './process-usage.ts'
import { quantile, rounded } from './statistics.ts'
import { isAvailable } from './web-deployment.ts'

const deployments = { group: 'apps', version: 'v1', resource: 'deployments' }
const configMaps = { group: '', version: 'v1', resource: 'configmaps' }
const pods = { group: '', version: 'v1', resource: 'pods' }
const namespaces = { group: '', version: 'v1', resource: 'namespaces' }

/** Deployments that are applied one after the other. */
const single = 60
const mapCount = 5000
const mapsEach = 100
const manyCount = 1000
/** Of 110 pods each: a Deployment of one pod needs room for two, one of them during a rollout. */
const nodes = 24
/** Requests of this program at a time. */
const clients = 16
const deadlineMs = 300_000

/** One object after another, and ConfigMaps that workloads begin to use. */
export const sync: Measurement = {
  name: 'sync',
  describes: `a member on simulated nodes: ${single} Deployments one by one, then ${mapCount} ConfigMaps`,
  run: (context) =>
    withMember(context, async (bench) => {
      await bench.namespace('one')
      await bench.oneByOne(8)
      const one = await bench.oneByOne(single)
      context.say(JSON.stringify(one))
      return { ...one, ...(await bench.manyMaps()) }
    }),
}

/** Many Deployments at once. */
export const syncMany: Measurement = {
  name: 'sync-many',
  describes: `a member on simulated nodes: ${manyCount} Deployments at once`,
  run: (context) => withMember(context, (bench) => bench.manyDeployments(context.say)),
}

interface Context extends ContextOfMeasurement {
  /** Of the member. */
  readonly name?: string
  /** `bin/kcp` of another checkout. Default: ours. */
  readonly program?: string
  /** Joins the member in pull mode, with an agent beside it. */
  readonly pull?: boolean
}
type ContextOfMeasurement = Parameters<Measurement['run']>[0]

/** Starts kcp and a member that has joined it, and measures. */
export async function withMember(
  { signal, say, name = 'benchmember', program = kcpProgram, pull = false }: Context,
  measure: (bench: Bench) => Promise<Numbers>,
): Promise<Numbers> {
  await using stack = new AsyncDisposableStack()
  const dir = mkdtempSync(join(tmpdir(), 'kcp-bench-sync-'))
  stack.defer(() => rmSync(dir, { recursive: true, force: true }))
  const fast = ['--kube-api-qps=1000', '--kube-api-burst=2000']
  const flags = { 'kube-controller-manager': fast, 'kube-scheduler': fast }
  const member = stack.use(await startCluster({ name, controllerManager: true, scheduler: true, flags, signal }))
  stack.use(await startKwok({ kubeconfig: member.kubeconfig, label: name, dir, nodes }))
  const root = join(dir, 'kcp')
  const kcp = stack.use(await startKcpUnderTest({ dir: root, program }))
  const file = await kcp.tenantKubeconfig('acme')
  const joining: [string, string, string, ...string[]] = [
    'member',
    'join',
    'east',
    '--kubeconfig',
    member.kubeconfig,
    '--root-dir',
    join(root, 'root'),
  ]
  const agent = pull ? stack.use(await joinByAgent(joining, { kcp, kubeconfig: member.kubeconfig, dir })) : undefined
  if (agent === undefined) await runKcp(joining)
  const up = await clientOf(file, stack)
  const down = await clientOf(member.kubeconfig, stack)
  say('the member has joined')
  const numbers = await measure(new Bench({ up, down, pids: withChildren(kcp.pid), signal }))
  return {
    ...numbers,
    'MiB resident at the end': rounded(residentMiB(withChildren(kcp.pid))),
    ...(agent && {
      'CPU seconds of the agent': rounded(cpuSeconds([agent.pid])),
      'MiB of the agent': rounded(residentMiB([agent.pid])),
    }),
  }
}

async function clientOf(kubeconfig: string, stack: AsyncDisposableStack): Promise<KubeClient> {
  return createClient(stack.use(httpTransport(await loadKubeconfig({ file: kubeconfig }, { trusted: true }))))
}

interface BenchOptions {
  readonly up: KubeClient
  readonly down: KubeClient
  readonly pids: readonly number[]
  readonly signal: AbortSignal
}

export class Bench {
  readonly #options: BenchOptions
  #next = 0

  constructor(options: BenchOptions) {
    this.#options = options
  }

  async namespace(name: string): Promise<void> {
    const { up, signal } = this.#options
    await up.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }, { signal })
  }

  /**
   * From the create of a Deployment of one pod to its copy in the member; from its pod's Ready there to Ready upstream;
   * writes.
   */
  async oneByOne(count: number): Promise<Numbers> {
    const { up, down, pids } = this.#options
    await using seen = {
      copies: this.#follow(down, deployments, isThere),
      readyDown: this.#follow(down, pods, isReady),
      readyUp: this.#follow(up, pods, isReady),
      ready: this.#follow(up, deployments, isAvailable),
      async [Symbol.asyncDispose]() {
        await Promise.all([this.copies, this.readyDown, this.readyUp, this.ready].map((one) => one.end()))
      },
    }
    const copied: number[] = []
    const back: number[] = []
    const whole: number[] = []
    const writes: number[] = []
    const cpu = cpuSeconds(pids)
    for (let i = 0; i < count; i++) {
      const name = `one-${this.#next++}`
      const began = performance.now()
      await this.#create(deployments, deployment('one', name, 1, []))
      copied.push((await seen.copies.first(name)) - began)
      whole.push((await seen.ready.first(name)) - began)
      const pod = await waitFor(() => seen.readyUp.named(`${name}-`), { what: 'the pod', deadlineMs, intervalMs: 5 })
      back.push((await seen.readyUp.first(pod)) - (await seen.readyDown.first(pod)))
      writes.push(seen.ready.events(name))
    }
    const median = (values: readonly number[]): number => rounded(quantile(values, 0.5))
    const p99 = (values: readonly number[]): number => rounded(quantile(values, 0.99))
    return {
      'apply to the copy in the member p50 ms': median(copied),
      'apply to the copy in the member p99 ms': p99(copied),
      'pod Ready in the member to Ready upstream p50 ms': median(back),
      'pod Ready in the member to Ready upstream p99 ms': p99(back),
      'apply to Available upstream p50 ms': median(whole),
      'writes of a Deployment upstream from apply to Available p50': median(writes),
      'CPU ms of kcp per Deployment, one by one': rounded(((cpuSeconds(pids) - cpu) * 1000) / count),
    }
  }

  /** ConfigMaps that are in the logical cluster already, and that Deployments without pods begin to use. */
  async manyMaps(): Promise<Numbers> {
    const { down, pids } = this.#options
    await this.namespace('maps')
    const names = Array.from({ length: mapCount }, (_, i) => `map-${i}`)
    await inParallel(names, clients, (name) =>
      this.#create(configMaps, {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name, namespace: 'maps' },
        data: { text: name.padEnd(500, 'x') },
      }),
    )
    await using copies = this.#follow(down, configMaps, isThere)
    const [began, cpu] = [performance.now(), cpuSeconds(pids)]
    const groups = Array.from({ length: mapCount / mapsEach }, (_, i) => i)
    await inParallel(groups, clients, (i) =>
      this.#create(deployments, deployment('maps', `user-${i}`, 0, names.slice(i * mapsEach, (i + 1) * mapsEach))),
    )
    await waitFor(() => copies.count('map-') >= mapCount, { what: 'the ConfigMaps', deadlineMs })
    const seconds = (performance.now() - began) / 1000
    return {
      'ConfigMaps/s into the member': rounded(mapCount / seconds),
      'CPU ms of kcp per ConfigMap': rounded(((cpuSeconds(pids) - cpu) * 1000) / mapCount),
    }
  }

  async manyDeployments(say: (line: string) => void): Promise<Numbers> {
    const { up, down, pids } = this.#options
    await this.namespace('many')
    await using copies = this.#follow(down, deployments, isThere)
    await using ready = this.#follow(up, deployments, isAvailable)
    const [began, cpu] = [performance.now(), cpuSeconds(pids)]
    const names = Array.from({ length: manyCount }, (_, i) => `many-${i}`)
    await inParallel(names, clients, (name) => this.#create(deployments, deployment('many', name, 1, [])))
    const created = (performance.now() - began) / 1000
    await waitFor(() => copies.count('many-') >= manyCount, { what: 'the copies', deadlineMs })
    const seconds = (performance.now() - began) / 1000
    const cpuThen = cpuSeconds(pids) - cpu
    say(
      `created in ${rounded(created)} s, in the member after ${rounded(seconds)} s, ${rounded(cpuThen)} CPU seconds of kcp`,
    )
    const progress = setInterval(() => say(`${ready.count('many-')} are Available`), 20_000)
    await waitFor(() => ready.count('many-') >= manyCount, { what: 'all Available', deadlineMs }).finally(() =>
      clearInterval(progress),
    )
    const events = names.map((name) => ready.events(name))
    return {
      'seconds to create 1,000 Deployments': rounded(created),
      'Deployments/s into the member, from the first create': rounded(manyCount / seconds),
      'seconds until 1,000 Deployments are Available upstream': rounded((performance.now() - began) / 1000),
      'CPU ms of kcp per Deployment until it is in the member': rounded((cpuThen * 1000) / manyCount),
      'CPU ms of kcp per Deployment until it is Available': rounded(((cpuSeconds(pids) - cpu) * 1000) / manyCount),
      'writes of a Deployment upstream, of 1,000 at once p50': rounded(quantile(events, 0.5)),
    }
  }

  async #create(gvr: GroupVersionResource, object: KubeObject): Promise<void> {
    await this.#options.up.create(gvr, object, { signal: this.#options.signal })
  }

  #follow(client: KubeClient, gvr: GroupVersionResource, is: (object: KubeObject) => boolean): Followed {
    return new Followed(client, gvr, is, this.#options.signal)
  }
}

/**
 * When objects first met a condition, and how many events they had until then; by name, from one watch of all
 * namespaces.
 */
class Followed implements AsyncDisposable {
  readonly #first = new Map<string, PromiseWithResolvers<number>>()
  readonly #met = new Set<string>()
  readonly #events = new Map<string, number>()
  readonly #life = new AbortController()
  readonly #done: Promise<void>

  constructor(client: KubeClient, gvr: GroupVersionResource, is: (object: KubeObject) => boolean, signal: AbortSignal) {
    signal.addEventListener('abort', () => this.#life.abort(signal.reason), { once: true })
    this.#done = this.#run(client, gvr, is)
  }

  async #run(client: KubeClient, gvr: GroupVersionResource, is: (object: KubeObject) => boolean): Promise<void> {
    const { signal } = this.#life
    try {
      const { metadata } = await client.list(gvr, { limit: 1, signal })
      const resourceVersion = metadata.resourceVersion ?? ''
      for await (const { type, object } of client.watch<KubeObject>(gvr, { resourceVersion, signal })) {
        const { name = '' } = object.metadata
        if (type === 'BOOKMARK' || this.#met.has(name)) continue
        this.#events.set(name, (this.#events.get(name) ?? 0) + 1)
        if (type === 'DELETED' || !is(object)) continue
        this.#met.add(name)
        this.#promise(name).resolve(performance.now())
      }
    } catch (error) {
      if (!signal.aborted) throw error
    }
  }

  #promise(name: string): PromiseWithResolvers<number> {
    const known = this.#first.get(name) ?? Promise.withResolvers<number>()
    this.#first.set(name, known)
    return known
  }

  first(name: string): Promise<number> {
    return this.#promise(name).promise
  }

  /** The name of an object that met the condition, by its prefix. */
  named(prefix: string): string | undefined {
    return [...this.#met].find((name) => name.startsWith(prefix))
  }

  count(prefix: string): number {
    let count = 0
    for (const name of this.#met) if (name.startsWith(prefix)) count++
    return count
  }

  events(name: string): number {
    return this.#events.get(name) ?? 0
  }

  async end(): Promise<void> {
    this.#life.abort()
    await this.#done
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.end()
  }
}

const isThere = (): boolean => true

function isReady(pod: KubeObject): boolean {
  const { conditions = [] } = (pod['status'] ?? {}) as { conditions?: readonly { type: string; status: string }[] }
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True')
}

function deployment(namespace: string, name: string, replicas: number, maps: readonly string[]): KubeObject {
  const labels = { app: name }
  const resources = { requests: { cpu: '10m', memory: '16Mi' } }
  const container = { name: 'web', image: 'example/web:1', resources, ports: [{ containerPort: 8080 }] }
  const sources = maps.map((map) => ({ configMap: { name: map } }))
  const volumes = maps.length === 0 ? {} : { volumes: [{ name: 'maps', projected: { sources } }] }
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace, labels },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [container], ...volumes } },
    },
  }
}
