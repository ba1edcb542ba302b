// Many members that are real control planes, and thousands of Deployments on them: how fast they are placed, a drain of
// one member, and what is decided and written when another does not answer for a while.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { GroupVersionResource, KubeObject } from '#apimachinery/meta/index.ts'
import { sleep } from '#async/index.ts'
import { createClient, httpTransport, loadKubeconfig, type Kubeconfig, type KubeClient } from '#client/index.ts'
import { isConditionTrue, logicalClusters, memberClusters, placements, type LogicalCluster } from '#crds/index.ts'
import { joinMember } from '#syncer/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import { waitFor } from '#test/support/index.ts'
import { inParallel } from './in-parallel.ts'
import { startKcpUnderTest } from './kcp-under-test.ts'
import type { Measurement, Numbers } from './measurement.ts'
import { startMemberFleet, type MemberFleet } from './member-fleet.ts'
import { ProcessSamples } from './process-samples.ts'
import { withChildren } from './process-usage.ts'
import { memberCount, sizeFrom } from './sizes.ts'
import { quantile, rounded } from './statistics.ts'
import { webDeployment } from './web-deployment.ts'
import { countEvents, WorkloadWatch } from './workload-watch.ts'

const deployments = { group: 'apps', version: 'v1', resource: 'deployments' } as const
const namespaces = { group: '', version: 'v1', resource: 'namespaces' } as const
/** The upstream resources in which the bench counts writes of decisions and reports. */
const writtenResources: readonly GroupVersionResource[] = [
  deployments,
  { group: 'apps', version: 'v1', resource: 'replicasets' },
  { group: '', version: 'v1', resource: 'pods' },
  { group: '', version: 'v1', resource: 'events' },
  { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices' },
]

const sizes = {
  members: memberCount,
  clusters: sizeFrom('KCP_BENCH_CLUSTERS', 100),
  deployments: sizeFrom('KCP_BENCH_DEPLOYMENTS', 5000),
  /** Workloads on the member that is drained. */
  drained: sizeFrom('KCP_BENCH_DRAINED', 500),
  /** Of these, applied one after the other before the others. */
  steady: sizeFrom('KCP_BENCH_STEADY', 200),
  perSecond: sizeFrom('KCP_BENCH_PER_SECOND', 10),
  /** How long a member does not answer: longer than the 10 s of a probe and the 40 s until it is lost. */
  silentSeconds: sizeFrom('KCP_BENCH_SILENT_SECONDS', 75),
}
const perNamespace = 10
/** Requests of this program at a time. */
const clients = 16
const deadlineMs = 900_000
const idleSeconds = 20

export const fleet: Measurement = {
  name: 'fleet',
  describes: `${sizes.deployments} Deployments on ${sizes.members} members that are kube-apiservers: placed, a drain of ${sizes.drained}, a member that does not answer`,
  async run({ signal, say }) {
    await using stack = new AsyncDisposableStack()
    const dir = mkdtempSync(join(tmpdir(), 'kcp-bench-fleet-'))
    stack.defer(() => rmSync(dir, { recursive: true, force: true }))
    const members = stack.use(await startMemberFleet({ count: sizes.members, signal, say }))
    const kcp = stack.use(await startKcpUnderTest({ dir }))
    const transport = stack.use(
      httpTransport(atRoot(await loadKubeconfig({ file: kcp.adminKubeconfig }, { trusted: true }))),
    )
    const client = (cluster: string): KubeClient => createClient(transport, { basePath: `/clusters/${cluster}` })
    const watch = stack.use(new WorkloadWatch(client('*'), client('root'), signal))
    const usage = stack.use(new ProcessSamples(withChildren(kcp.pid)))
    const bench = new Bench({ members, client, watch, usage, signal, say })
    const numbers: Record<string, number> = {}
    for (const step of [
      () => bench.join(),
      () => bench.tenants(),
      () => bench.steady(),
      () => bench.mass(),
      () => bench.idle(),
      () => bench.drain(),
      () => bench.silence(),
    ]) {
      const found = await step()
      say(JSON.stringify(found))
      Object.assign(numbers, found)
    }
    return {
      ...numbers,
      'MiB resident of kcp, most': rounded(usage.mostMiB),
      'MiB resident of kcp at the end': rounded(usage.nowMiB),
      'MiB of a member, anonymous': rounded(members.anonymousMiB() / sizes.members),
    }
  },
}

interface BenchDependencies {
  readonly members: MemberFleet
  readonly client: (cluster: string) => KubeClient
  readonly watch: WorkloadWatch
  readonly usage: ProcessSamples
  readonly signal: AbortSignal
  readonly say: (line: string) => void
}

interface Place {
  readonly cluster: string
  readonly namespace: string
  readonly name: string
}

class Bench {
  readonly #dependencies: BenchDependencies
  readonly #places: readonly Place[] = placesOf(sizes.clusters, sizes.deployments)

  constructor(dependencies: BenchDependencies) {
    this.#dependencies = dependencies
  }

  /** All members, each as `kcp member join` does it. */
  async join(): Promise<Numbers> {
    const { members, client, watch, usage, signal } = this.#dependencies
    const phase = usage.phase()
    await inParallel(members.members, clients, async ({ name, admin }, index) => {
      await joinMember({ name, memberKubeconfig: admin, clusters: client('root'), log: silentLogger, signal })
      if (index === 0) await client('root').patch(memberClusters, { name }, 'merge', firstLabels, { signal })
    })
    const areReady = (): boolean =>
      watch.memberList().filter((member) => isConditionTrue(member, 'Schedulable')).length >= members.members.length
    await this.#until(areReady, 'all members to be ready')
    return { 'seconds until all members have joined': phase.seconds(), 'CPU seconds of kcp for that': phase.cpu() }
  }

  /** The logical clusters. Some have a Placement that prefers the member which is drained later. */
  async tenants(): Promise<Numbers> {
    const { client, signal } = this.#dependencies
    const preferring = Math.ceil((sizes.drained * sizes.clusters) / sizes.deployments)
    await client('root').create(placements, preferFirst, { signal })
    const names = Array.from({ length: sizes.clusters }, (_, index) => clusterName(index))
    await inParallel(names, clients, async (name, index) => {
      const metadata = { name, ...(index < preferring && { labels: first }) }
      const object = { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata }
      await client('root').create(logicalClusters, object, { signal })
    })
    const areReady = async (): Promise<boolean> => {
      const { items } = await client('root').list<LogicalCluster>(logicalClusters, { signal })
      return items.filter((item) => isConditionTrue(item, 'Ready')).length >= names.length
    }
    await this.#until(areReady, 'all logical clusters to be ready')
    const spaces = new Set(this.#places.map(({ cluster, namespace }) => `${cluster}/${namespace}`))
    await inParallel([...spaces], clients, async (space) => {
      const [cluster = '', name = ''] = space.split('/')
      await client(cluster).create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }, { signal })
    })
    return {}
  }

  /** Applied at a steady rate: from the request to the decision, and to Available. */
  async steady(): Promise<Numbers> {
    const { watch, usage, signal } = this.#dependencies
    const phase = usage.phase()
    const began = performance.now()
    // Distributed over the namespaces.
    const step = Math.max(1, Math.floor(this.#places.length / sizes.steady))
    const chosen = this.#places.filter((_, index) => index % step === 0).slice(0, sizes.steady)
    const applied = await Promise.all(
      chosen.map(async (place, index) => {
        await sleep((index * 1000) / sizes.perSecond, signal)
        const sent = performance.now()
        await this.#apply(place)
        return { key: keyOf(place), sent }
      }),
    )
    const late = (performance.now() - began) / 1000
    await this.#until(() => applied.every(({ key }) => watch.availableAt(key) !== undefined), 'the steady Deployments')
    const placed = applied.map(({ key, sent }) => (watch.placedAt(key) ?? Number.NaN) - sent)
    const available = applied.map(({ key, sent }) => (watch.availableAt(key) ?? Number.NaN) - sent)
    return {
      'applied a second': rounded(chosen.length / late),
      'apply to the decision p50 ms': rounded(quantile(placed, 0.5)),
      'apply to the decision p99 ms': rounded(quantile(placed, 0.99)),
      'apply to Available p50 ms': rounded(quantile(available, 0.5)),
      'apply to Available p99 ms': rounded(quantile(available, 0.99)),
      'CPU ms of kcp for each of them': rounded((phase.cpu() * 1000) / chosen.length),
    }
  }

  /** All others at once. */
  async mass(): Promise<Numbers> {
    const { watch, usage, say, members } = this.#dependencies
    const phase = usage.phase()
    const known = watch.placedCount
    const membersCpu = members.cpuSeconds()
    const rest = this.#places.filter((place) => watch.placedAt(keyOf(place)) === undefined)
    const progress = setInterval(() => {
      const { placedCount, availableCount } = watch
      say(`${rounded(phase.seconds())} s: ${placedCount} are placed, ${availableCount} Available`)
    }, 20_000)
    try {
      await inParallel(rest, clients, (place) => this.#apply(place))
      const created = phase.seconds()
      await this.#until(() => watch.placedCount >= known + rest.length, 'all Deployments to be placed')
      const [placed, placedCpu] = [phase.seconds(), phase.cpu()]
      await this.#until(async () => (await this.#copies()) >= this.#places.length, 'all copies in members', 2000)
      const [copied, copiedCpu] = [phase.seconds(), phase.cpu()]
      await this.#until(() => watch.availableCount >= this.#places.length, 'all Deployments to be Available')
      return {
        [`seconds to create ${rest.length} Deployments`]: rounded(created),
        'seconds until all are placed': rounded(placed),
        'seconds until all are in members': rounded(copied),
        'seconds until all are Available upstream': rounded(phase.seconds()),
        'CPU seconds of kcp until all are placed': rounded(placedCpu),
        'CPU seconds of kcp until all are in members': rounded(copiedCpu),
        'CPU seconds of kcp until all are Available': rounded(phase.cpu()),
        'CPU seconds of all members meanwhile': rounded(members.cpuSeconds() - membersCpu),
        'writes of a Deployment upstream p50': quantile(
          rest.map((place) => watch.writes(keyOf(place))),
          0.5,
        ),
        'MiB resident of kcp with all of them': rounded(usage.nowMiB),
      }
    } finally {
      clearInterval(progress)
    }
  }

  /** Nothing happens. */
  async idle(): Promise<Numbers> {
    const { usage, signal } = this.#dependencies
    await sleep(5000, signal)
    const phase = usage.phase()
    await sleep(idleSeconds * 1000, signal)
    return {
      '% of a core that kcp uses while nothing happens': rounded((phase.cpu() * 100) / phase.seconds()),
      'MiB resident of kcp while nothing happens': rounded(usage.nowMiB),
    }
  }

  /** As `kcp drain` does it. */
  async drain(): Promise<Numbers> {
    const { client, watch, usage, signal } = this.#dependencies
    const name = memberName(0)
    const there = watch.workloadsIn(name)
    const writes = watch.allWrites
    const phase = usage.phase()
    const lines = watch.followDrain(name)
    await client('root').patch(memberClusters, { name }, 'merge', { spec: { state: 'Draining' } }, { signal })
    await this.#until(() => watch.workloadsIn(name) === 0, 'the member to be empty')
    const [empty, cpu] = [phase.seconds(), phase.cpu()]
    const isDrained = (): boolean => {
      const member = watch.member(name)
      return member !== undefined && isConditionTrue(member, 'Drained')
    }
    await this.#until(isDrained, 'condition Drained')
    const { told, untrue } = lines.end()
    const seconds = phase.seconds()
    await client('root').patch(memberClusters, { name }, 'merge', { spec: { state: 'Active' } }, { signal })
    return {
      'workloads on the drained member': there,
      'seconds until the drained member is empty': rounded(empty),
      'moves/s in the drain': rounded(there / empty),
      'CPU ms of kcp for each move': rounded((cpu * 1000) / there),
      'writes of Deployments for each move': rounded((watch.allWrites - writes) / there),
      'seconds until condition Drained': rounded(seconds),
      'numbers of the drain told': told,
      'of these not true in the two seconds before': untrue,
    }
  }

  /** The API server of one member does not answer, then goes on. */
  async silence(): Promise<Numbers> {
    const { client, watch, usage, members, signal } = this.#dependencies
    await this.#until(() => watch.unsettledCount === 0, 'all workloads to serve')
    const others = members.members.filter((_, index) => index > 0)
    const chosen = others.toSorted((a, b) => watch.workloadsIn(b.name) - watch.workloadsIn(a.name))[0]
    if (chosen === undefined) return {}
    const { name, apiserver } = chosen
    const there = new Set(watch.keysIn(name))
    await using written = await countEvents(client('*'), writtenResources, signal)
    const before = watch.decisions()
    const phase = usage.phase()
    apiserver.send('SIGSTOP')
    const isReady = (): boolean => {
      const member = watch.member(name)
      return member !== undefined && isConditionTrue(member, 'Ready')
    }
    let most = 0
    try {
      await this.#until(() => !isReady(), 'the member not to be ready')
      const end = performance.now() + sizes.silentSeconds * 1000 - phase.seconds() * 1000
      while (performance.now() < end) {
        await sleep(1000, signal)
        most = Math.max(most, watch.lostCount)
      }
    } finally {
      apiserver.send('SIGCONT')
    }
    const back = usage.phase()
    await this.#until(() => isReady() && watch.unsettledCount === 0, 'the member to be back')
    const seconds = back.seconds()
    await sleep(15_000, signal)
    const changed = watch.changedSince(before)
    return {
      'workloads on the silent member': there.size,
      'of these lost after 40 s': most,
      'decided again: on the silent member': changed.filter((key) => there.has(key)).length,
      'decided again: others': changed.filter((key) => !there.has(key)).length,
      ...Object.fromEntries(
        Object.entries(written.counts).map(([what, count]) => [`writes meanwhile: ${what}`, count]),
      ),
      'seconds from its return until all serve': rounded(seconds),
      '% of a core that kcp uses meanwhile': rounded((phase.cpu() * 100) / phase.seconds()),
    }
  }

  async #apply({ cluster, namespace, name }: Place): Promise<void> {
    const options = { fieldManager: 'bench', signal: this.#dependencies.signal }
    await this.#dependencies
      .client(cluster)
      .patch(deployments, { namespace, name }, 'apply', webDeployment(namespace, name), options)
  }

  /** Copies in all members, without our nameserver in each. */
  async #copies(): Promise<number> {
    const { members, signal } = this.#dependencies
    const counts = await Promise.all(
      members.members.map(async ({ client }) => {
        const { items, metadata } = await client.list(deployments, { limit: 1, signal })
        return items.length + (metadata.remainingItemCount ?? 0) - 1
      }),
    )
    return counts.reduce((sum, count) => sum + count, 0)
  }

  #until(ready: () => boolean | Promise<boolean>, what: string, intervalMs = 50): Promise<unknown> {
    return waitFor(ready, { what, deadlineMs, intervalMs, signal: this.#dependencies.signal })
  }
}

const first = { fleet: 'first' }
const firstLabels = { metadata: { labels: first } }
const preferFirst: KubeObject = {
  apiVersion: 'kcp.dev/v1alpha1',
  kind: 'Placement',
  metadata: { name: 'first' },
  spec: {
    logicalClusterSelector: { matchLabels: first },
    prefer: [{ weight: 10, labelSelector: { matchLabels: first } }],
  },
}

const memberName = (index: number): string => `member-${String(index).padStart(2, '0')}`
const clusterName = (index: number): string => `t-${index}`
const keyOf = ({ cluster, namespace, name }: Place): string => `${cluster}|${namespace}/${name}`

function placesOf(clusters: number, count: number): Place[] {
  const each = Math.ceil(count / clusters)
  return Array.from({ length: clusters }, (_, cluster) =>
    Array.from({ length: each }, (_, index) => ({
      cluster: clusterName(cluster),
      namespace: `space-${Math.floor(index / perNamespace)}`,
      name: `web-${index % perNamespace}`,
    })),
  ).flat()
}

/** Kubeconfigs of kcp lead to one logical cluster: the others are beside it. */
function atRoot(kubeconfig: Kubeconfig): Kubeconfig {
  return {
    ...kubeconfig,
    async endpoint(options) {
      const found = await kubeconfig.endpoint(options)
      return { ...found, server: found.server.replace(/\/clusters\/[^/]+\/?$/, '') }
    },
  }
}
