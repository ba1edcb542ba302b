// Measures a tree of logical clusters beside as many flat ones: creation, memory, the latency of authorization in a leaf,
// and how soon an edit at the top holds in a leaf.
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { sleep } from '#async/index.ts'
import { runKcp } from '#test/support/index.ts'
import { inParallel } from './in-parallel.ts'
import { startKcpUnderTest, type KcpUnderTest } from './kcp-under-test.ts'
import { openEndpoint, type Endpoint } from './load.ts'
import { firstNamespaces, logicalClusters } from './logical-clusters.ts'
import type { Measurement, Numbers } from './measurement.ts'
import { residentMiB, withChildren } from './process-usage.ts'
import { median, quantile, rounded } from './statistics.ts'

const count = Number(process.env['KCP_BENCH_TREE'] ?? 10_000)
const fanOut = Math.ceil(count ** (1 / 4))
const [atOnce, rounds, edits, settleMs] = [16, 2000, 50, 10_000]

export const tree: Measurement = {
  name: 'tree',
  describes: `${count} logical clusters in a tree of depth 5 beside flat ones: creation, memory, authorization, edits`,
  async run({ signal, say }) {
    const flat = await created('flat', signal)
    say(`flat: ${JSON.stringify(flat)}`)
    const below = await created('tree', signal)
    return { ...flat, ...below }
  },
}

async function created(shape: 'flat' | 'tree', signal: AbortSignal): Promise<Numbers> {
  await using kcp = await startKcpUnderTest()
  await using root = openEndpoint(kcp.adminKubeconfig, { connections: atOnce })
  await using all = openEndpoint(kcp.adminKubeconfig, { connections: atOnce, base: '/clusters' })
  const pids = withChildren(kcp.pid)
  const before = residentMiB(pids)
  const began = performance.now()
  // A level begins when the level above is there: a parent must exist.
  for (let first = 0; first < count;) {
    const last = shape === 'flat' ? count : Math.min(count, first * fanOut + 1)
    const level = Array.from({ length: last - first }, (_, i) => first + i)
    await inParallel(level, atOnce, async (i) => {
      await root.json('POST', logicalClusters, objectOf(shape, i))
      await firstNamespaces(all, nameOf(i))
    })
    first = last
  }
  const perSecond = count / ((performance.now() - began) / 1000)
  await sleep(settleMs, signal)
  const kibEach = ((residentMiB(pids) - before) * 1024) / count
  return {
    [`${shape}: created per second`]: rounded(perSecond),
    [`${shape}: KiB each`]: rounded(kibEach),
    ...(shape === 'tree' ? await inTree(kcp, root, all) : {}),
  }
}

const nameOf = (i: number): string => `n-${i}`

function objectOf(shape: 'flat' | 'tree', i: number): string {
  const spec = shape === 'flat' || i === 0 ? {} : { parentRef: { name: nameOf(Math.floor((i - 1) / fanOut)) } }
  return JSON.stringify({ apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name: nameOf(i) }, spec })
}

const leaf = nameOf(count - 1)
const bindings = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings'
const read = '/api/v1/namespaces/default/configmaps/none'

function bindingOf(name: string, subject: object, labels: object = {}): string {
  return JSON.stringify({
    metadata: { name, labels },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
    subjects: [subject],
  })
}
const boundUser = { kind: 'User', name: 'bob' }
const masters = { kind: 'Group', name: 'system:masters' }
const inherit = { 'kcp.dev/inherit': 'true' }

/** A request of a user, which is answered with a status: 404 if a role allows it, 403 if none does. */
interface Probe {
  readonly title: string
  readonly user: Endpoint
  readonly path: string
  readonly status: number
}

/** Latencies in a leaf and in a flat logical cluster of the same server, and the time until an edit at the top counts. */
async function inTree(kcp: KcpUnderTest, root: Endpoint, all: Endpoint): Promise<Numbers> {
  await root.json('POST', logicalClusters, objectOf('flat', count))
  const flat = nameOf(count)
  await firstNamespaces(all, flat)
  for (const name of [flat, leaf]) await all.json('POST', `/${name}${bindings}`, bindingOf('bob', boundUser))
  await all.json('POST', `/${nameOf(0)}${bindings}`, bindingOf('below', masters, inherit))
  const [ofFlat, ofLeaf] = [await kubeconfigOf(kcp, flat), await kubeconfigOf(kcp, leaf)]
  const as = (kubeconfig: string, user: string) =>
    openEndpoint(kubeconfig, { connections: 1, headers: { 'impersonate-user': user } })
  await using top = openEndpoint(await kubeconfigOf(kcp, nameOf(0)), { connections: 1, base: '/clusters' })
  await using bobInFlat = as(ofFlat, 'bob')
  await using bob = as(ofLeaf, 'bob')
  await using eveInFlat = as(ofFlat, 'eve')
  await using eve = as(ofLeaf, 'eve')
  const probes: Probe[] = [
    { title: 'allowed in a flat one', user: bobInFlat, path: read, status: 404 },
    { title: 'allowed in a leaf', user: bob, path: read, status: 404 },
    { title: 'allowed in a leaf by an inherited role', user: top, path: `/${leaf}${read}`, status: 404 },
    { title: 'refused in a flat one', user: eveInFlat, path: read, status: 403 },
    { title: 'refused in a leaf', user: eve, path: read, status: 403 },
  ]
  return { ...(await latenciesOf(probes)), ...(await editsOf(top, all)) }
}

/** The probes by turns, so that all meet the same load of the machine. */
async function latenciesOf(probes: readonly Probe[]): Promise<Numbers> {
  const elapsed = probes.map((): number[] => [])
  for (let i = 0; i < rounds; i++)
    for (const [at, { user, path, status: wanted }] of probes.entries()) {
      const began = performance.now()
      const { status } = await user.request('GET', path)
      elapsed[at]?.push(performance.now() - began)
      if (status !== wanted) throw new Error(`GET ${path}: ${String(status)} instead of ${String(wanted)}`)
    }
  return Object.fromEntries(
    probes.flatMap(({ title }, at) => {
      const later = (elapsed[at] ?? []).slice(rounds / 4)
      return [
        [`${title} p50 ms`, rounded(median(later))],
        [`${title} p99 ms`, rounded(quantile(later, 0.99))],
      ]
    }),
  )
}

/** Takes a role of the top's users away and gives it back; a user of the top asks in a leaf until that counts. */
async function editsOf(user: Endpoint, all: Endpoint): Promise<Numbers> {
  const top = `/${nameOf(0)}${bindings}`
  const elapsed: number[] = []
  for (let i = 0; i < edits; i++)
    for (const status of [403, 404]) {
      if (status === 403) await all.json('DELETE', `${top}/below`)
      else await all.json('POST', top, bindingOf('below', masters, inherit))
      const began = performance.now()
      while ((await user.request('GET', `/${leaf}${read}`)).status !== status);
      elapsed.push(performance.now() - began)
    }
  return { 'edit at the top until it counts in a leaf, slowest ms': rounded(Math.max(...elapsed)) }
}

async function kubeconfigOf(kcp: KcpUnderTest, name: string): Promise<string> {
  const rootDir = dirname(kcp.adminKubeconfig)
  const file = join(rootDir, '..', `${name}.kubeconfig`)
  writeFileSync(file, (await runKcp(['kubeconfig', name, '--root-dir', rootDir])).stdout, { mode: 0o600 })
  return file
}
