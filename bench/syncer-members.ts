// The cost of idle members: memory, processor time, connections and watches, first without workloads, then with some in
// each. The cost of a further member is the difference between half of them and all, which leaves out the cost of the
// first.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { sleep } from '#async/index.ts'
import { createClient, httpTransport, loadKubeconfig, type KubeClient } from '#client/index.ts'
import { isConditionTrue, memberClusters, type MemberCluster } from '#crds/index.ts'
import { joinMember } from '#syncer/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import { freePort, waitFor, type ManagedProcess } from '#test/support/index.ts'
import { connectionOf } from './connection.ts'
import { HeapUsage } from './heap-usage.ts'
import { inParallel } from './in-parallel.ts'
import { joinByAgent } from './join-by-agent.ts'
import { startKcpUnderTest } from './kcp-under-test.ts'
import type { Measurement, Numbers } from './measurement.ts'
import { startMemberFleet, type FleetMember } from './member-fleet.ts'
import { connectionsTo } from '#test/support/open-connections.ts'
import { cpuSeconds, residentMiB, withChildren } from './process-usage.ts'
import { memberCount, sizeFrom } from './sizes.ts'
import { rounded } from './statistics.ts'
import { isAvailable, webDeployment } from './web-deployment.ts'

const deployments = { group: 'apps', version: 'v1', resource: 'deployments' } as const
const namespaces = { group: '', version: 'v1', resource: 'namespaces' } as const

/** Of each member. 0: the members run only their API servers, and nothing but empty members is measured. */
const workloads = sizeFrom('KCP_BENCH_MEMBER_WORKLOADS', 20)
const idleSeconds = sizeFrom('KCP_BENCH_IDLE_SECONDS', 60)
/** What joining and rollouts leave behind: caches that are packed after some seconds, and garbage. */
const settleSeconds = 20
/** KCP_BENCH_WAY=pull: the members are in pull mode, each with an agent beside it. */
const isPull = process.env['KCP_BENCH_WAY'] === 'pull'
/** Members that join, or get their workloads, at a time. */
const atOnce = 4
const deadlineMs = 600_000

export const syncerMembers: Measurement = {
  name: 'syncer-members',
  describes: `${memberCount} members that are kube-apiservers, and ${workloads} Deployments in each: memory and processor time of kcp while nothing happens`,
  async run({ signal, say }) {
    await using stack = new AsyncDisposableStack()
    const dir = mkdtempSync(path.join(tmpdir(), 'kcp-bench-syncer-'))
    stack.defer(() => rmSync(dir, { recursive: true, force: true }))
    const began = performance.now()
    const fleet = stack.use(await startMemberFleet({ count: memberCount, runsPods: workloads > 0, signal, say }))
    const startSeconds = (performance.now() - began) / 1000
    say(`${memberCount} members started in ${rounded(startSeconds)} s and have ${rounded(fleet.anonymousMiB())} MiB`)
    const inspector = await freePort()
    const kcp = stack.use(await startKcpUnderTest({ dir, env: { NODE_OPTIONS: `--inspect=127.0.0.1:${inspector}` } }))
    const clientOf = async (file: string): Promise<KubeClient> =>
      createClient(stack.use(httpTransport(await loadKubeconfig({ file }, { trusted: true }))))
    const heap = stack.use(await HeapUsage.connect(inspector, signal))
    const root = await clientOf(kcp.adminKubeconfig)
    const tenant = await clientOf(await kcp.tenantKubeconfig('acme'))
    const agents: ManagedProcess[] = []
    const join = async ({ name, kubeconfig }: FleetMember): Promise<void> => {
      const joining: [string, string, string, ...string[]] = ['member', 'join', name, '--kubeconfig', kubeconfig]
      joining.push('--root-dir', path.join(dir, 'root'))
      agents.push(stack.use(await joinByAgent(joining, { kcp, kubeconfig, dir })))
    }
    const bench = new Bench({ root, tenant, heap, pid: kcp.pid, ...(isPull && { join }), signal, say })

    const half = Math.ceil(memberCount / 2)
    const [first, second] = [fleet.members.slice(0, half), fleet.members.slice(half)]
    const ownWatches = await bench.watches(fleet.members)
    const none = await bench.idle('no member')
    await bench.join(first)
    const halfEmpty = await bench.idle(`${half} members, empty`)
    await bench.join(second)
    const empty = await bench.idle(`${memberCount} members, empty`)
    let perWorkloads: Numbers = {}
    if (workloads > 0) {
      await bench.deploy(first)
      const halfFull = await bench.idle(`${memberCount} members, ${half} with ${workloads} Deployments`)
      await bench.deploy(second)
      const full = await bench.idle(`${memberCount} members with ${workloads} Deployments`)
      perWorkloads = each(`${workloads} Deployments in one more member`, halfFull, full, second.length)
    }
    const watches = await bench.watches(fleet.members)
    return {
      'seconds until the members run': rounded(startSeconds),
      ...bench.numbers,
      ...each('with none before: one member, empty', none, empty, memberCount),
      ...each('one more member, empty', halfEmpty, empty, second.length),
      ...perWorkloads,
      ...(isPull && {
        'MiB of an agent': rounded(residentMiB(agents.map(({ pid }) => pid)) / memberCount),
        'CPU ms a second of an agent, at the end': rounded(
          await idleCpu(
            agents.map(({ pid }) => pid),
            signal,
          ),
        ),
      }),
      'connections of kcp to a member': rounded(bench.connections(fleet.members) / memberCount),
      'watches of kcp in a member': rounded((watches - ownWatches) / memberCount),
      'MiB of a member, anonymous': rounded(fleet.anonymousMiB() / memberCount),
    }
  },
}

async function idleCpu(pids: readonly number[], signal: AbortSignal): Promise<number> {
  const before = cpuSeconds(pids)
  await sleep(idleSeconds * 1000, signal)
  return ((cpuSeconds(pids) - before) * 1000) / idleSeconds / pids.length
}

interface Idle {
  readonly residentMiB: number
  /** After a collection of garbage, the main thread's. */
  readonly heapMiB: number
  readonly cpuMsPerSecond: number
}

interface BenchDependencies {
  readonly root: KubeClient
  readonly tenant: KubeClient
  readonly heap: HeapUsage
  /** Of kcp. */
  readonly pid: number
  /** Joins a member in another way than `kcp member join`. */
  readonly join?: (member: FleetMember) => Promise<void>
  readonly signal: AbortSignal
  readonly say: (line: string) => void
}

class Bench {
  readonly #dependencies: BenchDependencies
  readonly #numbers: Record<string, number> = {}

  constructor(dependencies: BenchDependencies) {
    this.#dependencies = dependencies
  }

  /** Of all times when nothing happened. */
  get numbers(): Numbers {
    return this.#numbers
  }

  /** As `kcp member join` does it. */
  async join(members: readonly FleetMember[]): Promise<void> {
    const { root, join, signal, say } = this.#dependencies
    const began = performance.now()
    await inParallel(members, atOnce, async (member) => {
      const { name, admin } = member
      if (join !== undefined) await join(member)
      else await joinMember({ name, memberKubeconfig: admin, clusters: root, log: silentLogger, signal })
      const isReady = async (): Promise<boolean> =>
        isConditionTrue(await root.get<MemberCluster>(memberClusters, { name }, { signal }), 'Schedulable')
      await waitFor(isReady, { what: `"${name}" to be ready`, deadlineMs, intervalMs: 250, signal })
    })
    say(`${members.length} members joined in ${rounded((performance.now() - began) / 1000)} s`)
  }

  /** A namespace for each of them whose Deployments run there, until all are Available. */
  async deploy(members: readonly FleetMember[]): Promise<void> {
    const { tenant, signal, say } = this.#dependencies
    const began = performance.now()
    await inParallel(members, atOnce, async ({ name: member }) => {
      const metadata = { name: member, annotations: { 'kcp.dev/clusters': member } }
      await tenant.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata }, { signal })
      for (let i = 0; i < workloads; i++)
        await tenant.create(deployments, webDeployment(member, `web-${i}`), { signal })
      const areAvailable = async (): Promise<boolean> => {
        const { items } = await tenant.list<KubeObject>(deployments, { namespace: member, signal })
        return items.filter(isAvailable).length === workloads
      }
      await waitFor(areAvailable, { what: `the Deployments in "${member}"`, deadlineMs, intervalMs: 500, signal })
    })
    say(`Deployments in ${members.length} members Available in ${rounded((performance.now() - began) / 1000)} s`)
  }

  /** While nothing happens. */
  async idle(title: string): Promise<Idle> {
    const { heap, pid, signal, say } = this.#dependencies
    await sleep(settleSeconds * 1000, signal)
    const pids = withChildren(pid)
    const [began, cpu] = [performance.now(), cpuSeconds(pids)]
    await sleep(idleSeconds * 1000, signal)
    const seconds = (performance.now() - began) / 1000
    const cpuMsPerSecond = ((cpuSeconds(pids) - cpu) * 1000) / seconds
    const seen = { residentMiB: residentMiB(pids), heapMiB: await heap.aliveMiB(signal), cpuMsPerSecond }
    say(`${title}: ${JSON.stringify(seen)}`)
    Object.assign(this.#numbers, {
      [`${title}: MiB resident`]: rounded(seen.residentMiB),
      [`${title}: MiB of heap and buffers`]: rounded(seen.heapMiB),
      [`${title}: CPU ms a second`]: rounded(cpuMsPerSecond),
    })
    return seen
  }

  connections(members: readonly FleetMember[]): number {
    const { pid } = this.#dependencies
    return members.reduce((sum, { kubeconfig }) => {
      const { host, port } = connectionOf(kubeconfig)
      return sum + connectionsTo(pid, host, port)
    }, 0)
  }

  /** Open at the members' API servers, those of their own programs included. */
  async watches(members: readonly FleetMember[]): Promise<number> {
    let sum = 0
    await inParallel(members, atOnce, async (member) => {
      const lines = (await member.metrics(this.#dependencies.signal)).split('\n')
      const open = lines.filter(
        (line) => line.startsWith('apiserver_longrunning_requests{') && line.includes('verb="WATCH"'),
      )
      sum += open.reduce((total, line) => total + Number(line.slice(line.lastIndexOf(' '))), 0)
    })
    return sum
  }
}

/** What each of `count` costs. */
function each(title: string, before: Idle, after: Idle, count: number): Numbers {
  return {
    [`${title}: KiB resident`]: rounded(((after.residentMiB - before.residentMiB) * 1024) / count),
    [`${title}: KiB of heap and buffers`]: rounded(((after.heapMiB - before.heapMiB) * 1024) / count),
    [`${title}: CPU ms a second`]: rounded((after.cpuMsPerSecond - before.cpuMsPerSecond) / count),
  }
}
