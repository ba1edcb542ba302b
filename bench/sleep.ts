// Measures logical clusters that sleep: what they cost kcp and a member, and how fast they are there again.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { createClient, httpTransport, loadKubeconfig, type KubeClient } from '#client/index.ts'
import { runKcp, startCluster, waitFor } from '#test/support/index.ts'
import { startKwok } from '#test/upstream/workload-controllers.ts'
import { inParallel } from './in-parallel.ts'
import { startKcpUnderTest } from './kcp-under-test.ts'
import { openEndpoint, type Endpoint } from './load.ts'
import { firstNamespaces, logicalCluster, logicalClusters } from './logical-clusters.ts'
import type { Measurement } from './measurement.ts'
import { cpuSeconds, residentMiB, withChildren } from './process-usage.ts'
import { median, quantile, rounded } from './statistics.ts'
import { isAvailable, webDeployment } from './web-deployment.ts'

const count = 1000
/** How many of them are woken one by one. */
const woken = 50
/** Of 110 pods each: a Deployment of one pod needs room for two, one of them during a rollout. */
const nodes = 24
const clients = 8
const deadlineMs = 600_000
const merge = 'application/merge-patch+json'
const pods = { group: '', version: 'v1', resource: 'pods' }
const deployment = '/apis/apps/v1/namespaces/default/deployments'

/** One Deployment in each of 1,000 logical clusters: awake, asleep, and awake again. */
export const sleeping: Measurement = {
  name: 'sleep',
  describes: `${count} logical clusters with a Deployment each, on simulated nodes: asleep, and the first answer of ${woken} that wake`,
  async run({ signal, say }) {
    await using stack = new AsyncDisposableStack()
    const dir = mkdtempSync(join(tmpdir(), 'kcp-bench-sleep-'))
    stack.defer(() => rmSync(dir, { recursive: true, force: true }))
    const fast = ['--kube-api-qps=1000', '--kube-api-burst=2000']
    const flags = { 'kube-controller-manager': fast, 'kube-scheduler': fast }
    const member = stack.use(
      await startCluster({ name: 'benchsleep', controllerManager: true, scheduler: true, flags, signal }),
    )
    stack.use(await startKwok({ kubeconfig: member.kubeconfig, label: 'benchsleep', dir, nodes }))
    const kcp = stack.use(await startKcpUnderTest())
    const rootDir = dirname(kcp.adminKubeconfig)
    await runKcp(['member', 'join', 'east', '--kubeconfig', member.kubeconfig, '--root-dir', rootDir])
    const east = await clientOf(member.kubeconfig, stack)
    const root = stack.use(openEndpoint(kcp.adminKubeconfig, { connections: clients }))
    const headers = { 'impersonate-user': 'alice', 'impersonate-group': 'system:masters' }
    const alice = stack.use(openEndpoint(kcp.adminKubeconfig, { connections: clients, base: '/clusters', headers }))
    const names = Array.from({ length: count }, (_, i) => `s-${i}`)
    await inParallel(names, clients, async (name) => {
      const object = { ...(JSON.parse(logicalCluster(name)) as object), spec: { sleep: {} } }
      await root.json('POST', logicalClusters, JSON.stringify(object))
      await firstNamespaces(alice, name)
      await alice.json('POST', `/${name}${deployment}`, JSON.stringify(webDeployment('default', 'web')))
    })
    const ofTenants = async (): Promise<number> => {
      const { items } = await east.list<KubeObject>(pods, { labelSelector: 'kcp.dev/managed=true', signal })
      return items.filter(({ metadata }) => metadata.namespace !== 'kcp-system').length
    }
    const until = (what: string, wanted: number): Promise<unknown> =>
      waitFor(async () => (await ofTenants()) === wanted, { what, deadlineMs, intervalMs: 500 })
    say('all are applied')
    await until('all pods', count)
    await inParallel(names, clients, (name) => available(alice, name))
    const pids = withChildren(kcp.pid)
    const awake = residentMiB(pids)
    say(`${count} run, with ${rounded(awake)} MiB`)

    const [began, cpu] = [performance.now(), cpuSeconds(pids)]
    await inParallel(names, clients, async (name) => {
      const body = JSON.stringify({ metadata: { annotations: { 'kcp.dev/sleep-order': '1' } } })
      const { status } = await root.request('PATCH', `${logicalClusters}/${name}`, body, merge)
      if (status !== 200) throw new Error(`the order to "${name}" was answered ${status}`)
    })
    await until('no pods', 0)
    const seconds = (performance.now() - began) / 1000
    const cpuMs = ((cpuSeconds(pids) - cpu) * 1000) / count
    say(`asleep after ${rounded(seconds)} s`)
    const settled = await waitFor(() => stillCpu(pids), { what: 'an idle kcp', deadlineMs, intervalMs: 0 })

    const [reads, answers, ready]: [number[], number[], number[]] = [[], [], []]
    for (const name of names.slice(0, woken)) {
      let from = performance.now()
      await alice.json('GET', `/${name}${deployment}/web`)
      reads.push(performance.now() - from)
      from = performance.now()
      const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'hello' } }
      await alice.json('POST', `/${name}/api/v1/namespaces/default/configmaps`, JSON.stringify(object))
      answers.push(performance.now() - from)
      await available(alice, name)
      ready.push(performance.now() - from)
    }
    await until('the pods of those that were woken, and no others', woken)
    return {
      'MiB of kcp, all awake': rounded(awake),
      'MiB of kcp, all asleep': rounded(settled.mib),
      'CPU ms of kcp a second, all asleep': rounded(settled.cpuMs),
      'pods in the member, all asleep': 0,
      'seconds from the first order to the last pod gone': rounded(seconds),
      'CPU ms of kcp per logical cluster that falls asleep': rounded(cpuMs),
      'asleep: read p50 ms': rounded(median(reads)),
      'waking: answer to the first write p50 ms': rounded(median(answers)),
      'waking: answer to the first write p99 ms': rounded(quantile(answers, 0.99)),
      'waking: first write to Available p50 ms': rounded(median(ready)),
      'waking: first write to Available p99 ms': rounded(quantile(ready, 0.99)),
    }
  },
}

async function clientOf(kubeconfig: string, stack: AsyncDisposableStack): Promise<KubeClient> {
  return createClient(stack.use(httpTransport(await loadKubeconfig({ file: kubeconfig }, { trusted: true }))))
}

async function available(all: Endpoint, name: string): Promise<void> {
  const isThere = async (): Promise<boolean> =>
    isAvailable((await all.json('GET', `/${name}${deployment}/web`)) as KubeObject)
  await waitFor(isThere, { what: `the Deployment of ${name}`, deadlineMs, intervalMs: 10 })
}

/** CPU and memory over ten seconds in which kcp has nothing to do; undefined if it had. */
async function stillCpu(pids: readonly number[]): Promise<{ cpuMs: number; mib: number } | undefined> {
  const [began, cpu] = [performance.now(), cpuSeconds(pids)]
  await new Promise((resolve) => setTimeout(resolve, 10_000))
  const cpuMs = ((cpuSeconds(pids) - cpu) * 1_000_000) / (performance.now() - began)
  return cpuMs > mostIdleCpuMs ? undefined : { cpuMs, mib: residentMiB(pids) }
}
/** More CPU in a second means that something is still done. */
const mostIdleCpuMs = 100
