// One round of the upstream suite: a list of tests, each of which runs in every logical cluster, in all of them at
// once.
import { join } from 'node:path'
import { importKcp, kcpImage } from '#test/e2e/kcp-image.ts'
import { startInstance, type KcpInstance, type Tenant } from '#test/integration/kcp-instance.ts'
import { ensurePrograms, repositoryRoot, runKcp, startCluster } from '#test/support/index.ts'
import { machineAddress } from '#test/support/network.ts'
import { kubeconfigWithoutPath } from './kubeconfig-without-path.ts'
import type { RoundName } from './lists.ts'
import { startNodeNetwork } from './real-node.ts'
import type { UpstreamResult } from './report.ts'
import { standInNode } from './stand-in-node.ts'
import { runSuite, type SuiteRun } from './suite.ts'
import { testImages } from './test-images.ts'
import { startWorkloadControllers } from './workload-controllers.ts'

export interface RoundOptions {
  /** Decides what runs beside each logical cluster. */
  readonly round: RoundName
  /** Complete names. */
  readonly names: readonly string[]
  /** Number of logical clusters. */
  readonly clusters: number
  /** Number of tests that run at once in each of them; those marked [Serial] or [Disruptive] run alone in theirs. */
  readonly processes: number
  /** Limit of the whole round; unfinished tests then fail. Those that run alone have a minute at least. */
  readonly timeoutMs: number
  /** Runs so many tests at a time, and no others when `timeoutMs` is nearly over. Default: all at once. */
  readonly batch?: { readonly size: number; readonly onResults: (results: readonly UpstreamResult[]) => void }
  readonly signal: AbortSignal
}

export interface Round {
  /** One result per test: of the cluster in which it did not pass, if there is one. */
  readonly results: readonly UpstreamResult[]
  /** Every test in scope that the program knows. */
  readonly known: readonly string[]
  readonly logFiles: readonly string[]
}

/** Runs the tests. Rejects when a suite did not start or left no report. */
export async function runRound(options: RoundOptions): Promise<Round> {
  const { round, names, clusters, timeoutMs, batch, signal } = options
  const started = performance.now()
  const programs = await ensurePrograms(['e2e.test', 'kubectl'], { signal })
  await using stack = new AsyncDisposableStack()
  const kubeconfigs = await startClusters[round](clusters, stack)
  console.error(`${names.length} tests in each of ${clusters} logical clusters at once (${round}) ...`)
  const left = (): number => started + timeoutMs - performance.now()
  const done: Round[] = []
  for (let at = 0; at < names.length && (at === 0 || left() > timeoutMs / 5); at += batch?.size ?? names.length) {
    const some = names.slice(at, at + (batch?.size ?? names.length))
    const one = await runBatch({ ...options, names: some, left }, kubeconfigs, programs)
    batch?.onResults(one.results)
    done.push(one)
  }
  return {
    results: done.flatMap(({ results }) => results),
    known: [...new Set(done.flatMap(({ known }) => known))],
    logFiles: [...new Set(done.flatMap(({ logFiles }) => logFiles))],
  }
}

async function runBatch(
  { round, names, processes, batch, left, signal }: RoundOptions & { left: () => number },
  kubeconfigs: readonly string[],
  programs: Readonly<Record<'e2e.test' | 'kubectl', string>>,
): Promise<Round> {
  const abort = new AbortController()
  const ending = AbortSignal.any([abort.signal, signal])
  const shared = { program: programs['e2e.test'], kubectl: programs.kubectl, signal: ending }
  const { parts, serial } = partsOf(names, processes)
  const timeoutOf = (): number => (batch === undefined ? Math.max(60_000, left()) : Math.max(10_000, left()))
  const suites = kubeconfigs.map(async (kubeconfig, index): Promise<SuiteRun[]> => {
    const label = `${round}-${index + 1}`
    const run = (part: readonly string[], number: number): Promise<SuiteRun> =>
      runSuite({ ...shared, names: part, kubeconfig, timeoutMs: timeoutOf(), label: `${label}-${number + 1}` })
    const runs = await Promise.all(parts.map(run))
    return serial.length === 0 ? runs : [...runs, await run(serial, parts.length)]
  })
  // A failing suite aborts the others; all have ended before the logical clusters are deleted.
  for (const suite of suites) suite.catch((error: unknown) => abort.abort(error))
  await Promise.allSettled(suites)
  const runs = (await Promise.all(suites)).flat()
  return {
    results: worstOfEach(runs.flatMap((run) => run.results)),
    known: [...new Set(runs.flatMap((run) => run.known))],
    logFiles: runs.map((run) => run.logFile),
  }
}

const logDir = join(repositoryRoot, '.run', 'upstream')

/** Starts kcp and logical clusters, which are disposed of with the stack, and resolves with their kubeconfigs. */
const startClusters: Readonly<
  Record<RoundName, (clusters: number, stack: AsyncDisposableStack) => Promise<readonly string[]>>
> = {
  async alone(clusters, stack) {
    // The Endpoints of the Service kubernetes may not hold a loopback address.
    const flags = ['--bind-address=0.0.0.0', `--advertise-address=${machineAddress()}`]
    const tenants = await startTenants(stack.use(await startInstance(flags)), clusters)
    for (const { kubeconfig } of tenants) stack.use(await standInNode(kubeconfig))
    return tenants.map(kubeconfigWithoutPath)
  },

  async workloads(clusters, stack) {
    const tenants = await startTenants(stack.use(await startInstance()), clusters)
    for (const { name, kubeconfig } of tenants)
      stack.use(await startWorkloadControllers({ kubeconfig, label: name, dir: logDir, nodes: 2 }))
    return tenants.map(({ kubeconfig }) => kubeconfig)
  },

  async nodes(clusters, stack) {
    const network = stack.use(await startNodeNetwork(clusters))
    const tenants = await startTenants(stack.use(await startInstance(network.kcpFlags)), clusters)
    for (const [index, { name, kubeconfig }] of tenants.entries()) {
      stack.use(await startWorkloadControllers({ kubeconfig, label: name, dir: logDir, nodes: 0, scheduler: true }))
      const node = stack.use(await network.startNode(index, kubeconfig))
      await node.importImages(await testImages())
    }
    return tenants.map(({ kubeconfig }) => kubeconfig)
  },

  async members(clusters, stack) {
    const member = stack.use(await startCluster({ name: 'member', nodes: 1 }))
    await member.node?.importImages(await testImages())
    const flags = ['--bind-address=0.0.0.0', `--advertise-address=${member.hostAddress}`]
    const kcp = stack.use(await startInstance(flags))
    const join = ['member', 'join', member.name, '--kubeconfig', member.kubeconfig, '--service-network', 'Flat']
    const isPull = process.env['KCP_TEST_PULL'] === '1'
    if (isPull) await importKcp(member)
    const server = `https://${member.hostAddress}:${kcp.port}`
    const pull = isPull ? ['--pull', '--approve', '--apply', '--image', kcpImage, '--server', server] : []
    await runKcp([...join, ...pull, '--root-dir', kcp.rootDir])
    const tenants = await startTenants(kcp, clusters)
    // A logical cluster does not show the nodes of members: some tests read that of their pod.
    for (const { kubeconfig } of tenants) stack.use(await standInNode(kubeconfig, member.node))
    return tenants.map(({ kubeconfig }) => kubeconfig)
  },
}

async function startTenants(kcp: KcpInstance, clusters: number): Promise<readonly Tenant[]> {
  const tenants: Tenant[] = []
  for (let number = 1; number <= clusters; number++)
    tenants.push(await kcp.tenant(`upstream-${number}`, { podSecurity: 'privileged' }))
  return tenants
}

/** Divides tests among processes that run at once, and those that may not. */
export function partsOf(names: readonly string[], processes: number): { parts: string[][]; serial: string[] } {
  const serial = names.filter((name) => /\[(Serial|Disruptive)\]/.test(name))
  const rest = names.filter((name) => !serial.includes(name))
  const parts = Array.from({ length: processes }, (_, index) => rest.filter((__, at) => at % processes === index))
  return { parts: parts.filter(({ length }) => length > 0), serial }
}

/** A test passed when it passed everywhere: one result per name, a failed one before one that passed. */
export function worstOfEach(results: readonly UpstreamResult[]): UpstreamResult[] {
  const byName = new Map<string, UpstreamResult>()
  for (const result of results)
    if (byName.get(result.name)?.state === undefined || byName.get(result.name)?.state === 'passed')
      byName.set(result.name, result)
  return [...byName.values()]
}
