// A hostile member beside two honest ones: for some minutes its admin does at random what such an admin can, in the
// name of three logical clusters. What has nothing placed there stays as it is; how long neighbours wait, and how much
// memory kcp takes, is recorded and bounded.
import { readFileSync } from 'node:fs'
import { performance } from 'node:perf_hooks'
import { expect } from 'chai'
import { sleep } from '#async/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { KubeClient } from '#client/index.ts'
import { gvrs } from '#syncer/context/resources.ts'
import { runKcp, startCluster, waitFor } from '#test/support/index.ts'
import { startInstance, type KcpInstance, type Tenant } from '#test/integration/kcp-instance.ts'
import {
  contentOf,
  differences,
  Forger,
  forgeries,
  nodesOf,
  refuseDeletions,
  untilSeen,
  victims,
} from '#test/integration/syncer/forgeries.ts'
import { clientOf } from '#test/integration/syncer/ordinary-upstream.ts'
import { simulateKubelet } from '#test/integration/syncer/played-member.ts'

/** Default 5; the acceptance of a release takes 30. */
const minutes = Number(process.env['KCP_HOSTILE_MINUTES'] ?? '5')
const seed = Number(process.env['KCP_HOSTILE_SEED'] ?? String(Date.now() % 1_000_000))
const { signal } = new AbortController()

/** Namespaces in which nothing is placed on the hostile member; in `mixed` it runs a workload of its own. */
const targets = [
  { tenant: 'closed', namespace: 'shop', runs: 'east' },
  { tenant: 'acme', namespace: 'away', runs: 'west' },
  { tenant: 'acme', namespace: 'mixed', runs: 'east' },
  { tenant: 'third', namespace: 'shop', runs: 'west' },
] as const

/** Numbers from 0 up to 1, the same for a seed. */
function randomOf(start: number): () => number {
  let state = start >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

describe(`a hostile member for ${minutes} minutes, with seed ${seed}`, function () {
  this.timeout((minutes + 10) * 60_000)
  const stack = new AsyncDisposableStack()
  const life = new AbortController()
  const tenants: Record<string, Tenant> = {}
  const clients: Record<string, KubeClient> = {}
  const ids: Record<string, string> = {}
  let kcp: KcpInstance
  let evil: KubeClient

  const apply = (tenant: string, namespace: string, items: readonly KubeObject[]) =>
    tenants[tenant]!.kubectl(['-n', namespace, 'apply', '-f', '-'], {
      input: { apiVersion: 'v1', kind: 'List', items },
    })
  const own = (): KubeObject => ({
    ...{ apiVersion: 'apps/v1', kind: 'Deployment' },
    metadata: { name: 'own', annotations: { 'kcp.dev/clusters': 'evil' } },
    spec: {
      selector: { matchLabels: { app: 'own' } },
      template: {
        metadata: { labels: { app: 'own' } },
        spec: { containers: [{ name: 'app', image: 'example/own:1' }] },
      },
    },
  })
  const settled = async (tenant: string, namespace: string): Promise<Record<string, unknown>> => {
    let before = ''
    return await waitFor(
      async () => {
        const content = await contentOf(clients[tenant]!, namespace, signal)
        const isSame = JSON.stringify(content) === before
        before = JSON.stringify(content)
        return isSame && content
      },
      { what: `${namespace} to be at rest`, deadlineMs: 120_000, intervalMs: 4000 },
    )
  }
  const memoryMiB = (): number =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${kcp.process.pid}/status`, 'utf8'))?.[1] ?? 0) / 1024

  before(async function () {
    this.timeout(900_000)
    kcp = stack.use(await startInstance())
    stack.defer(() => life.abort())
    for (const [index, name] of ['east', 'west', 'evil'].entries()) {
      const cluster = stack.use(await startCluster({ name, controllerManager: true }))
      const client = await clientOf(cluster.kubeconfig, stack)
      simulateKubelet(client, { subnet: `10.9${index}.0`, signal: life.signal })
      await runKcp(['member', 'join', name, '--kubeconfig', cluster.kubeconfig, '--root-dir', kcp.rootDir])
      const spec = {
        serviceNetwork: { type: 'Flat' },
        ...(name === 'evil' && { logicalClusterSelector: { matchLabels: { evil: 'welcome' } } }),
      }
      await kcp.admin.kubectl(['patch', `mc/${name}`, '--type=merge', '-p', JSON.stringify({ spec })])
      await kcp.admin.kubectl(['wait', '--for=condition=Ready', `mc/${name}`, '--timeout=90s'])
      if (name === 'evil') evil = client
    }
    for (const name of ['closed', 'acme', 'third']) {
      tenants[name] = await kcp.tenant(name)
      clients[name] = await clientOf(tenants[name].kubeconfig, stack)
      ids[name] = (await kcp.admin.kubectl(['get', 'lc', name, '-o', 'jsonpath={.status.id}'])).stdout
    }
    for (const name of ['acme', 'third']) await kcp.admin.kubectl(['label', `lc/${name}`, 'evil=welcome'])
    await refuseDeletions(evil, signal)
    await tenants['acme']!.kubectl(['create', 'namespace', 'signs'])
    await apply('acme', 'signs', [own()])
    for (const { tenant, namespace, runs } of targets) {
      await tenants[tenant]!.kubectl(['create', 'namespace', namespace])
      await apply(tenant, namespace, victims(runs))
      if (namespace === 'mixed') await apply(tenant, namespace, [own()])
    }
    for (const { tenant, namespace } of targets)
      for (const what of [
        '--for=condition=Available deployment/web',
        '--for=jsonpath={.status.readyReplicas}=1 statefulset/db',
      ])
        await tenants[tenant]!.kubectl(['-n', namespace, 'wait', '--timeout=120s', ...what.split(' ')], {
          timeoutMs: 130_000,
        })
    const wait = ['wait', '--for=condition=Available', 'deployment/own', '--timeout=120s']
    for (const namespace of ['signs', 'mixed'])
      await tenants['acme']!.kubectl(['-n', namespace, ...wait], { timeoutMs: 130_000 })
  })
  after(async function () {
    this.timeout(120_000)
    await stack.disposeAsync()
  })

  it('changes nothing where it has nothing placed, lets no neighbour wait, and costs no memory', async function () {
    const random = randomOf(seed)
    const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)]!
    const rest = new Map<string, unknown>()
    const nodes = new Map<string, unknown>()
    const uids = new Map<string, string>()
    for (const { tenant, namespace } of targets) {
      rest.set(`${tenant}/${namespace}`, await settled(tenant, namespace))
      nodes.set(tenant, await nodesOf(clients[tenant]!, signal))
      for (const { kind, metadata } of victims('')) {
        const resource = (kind === 'Ingress' ? 'ingresses' : `${kind.toLowerCase()}s`) as keyof typeof gvrs
        const ref = { namespace, name: metadata.name ?? '' }
        const found = await clients[tenant]!.get<KubeObject>(gvrs[resource], ref, { signal })
        uids.set(`${tenant}/${namespace} ${kind}/${metadata.name}`, found.metadata.uid ?? '')
      }
    }
    const waits: number[] = []
    const idle: number[] = []
    const measure = async (into: () => number[], until: () => boolean): Promise<void> => {
      while (!until()) {
        const from = performance.now()
        await clients['closed']!.get(gvrs.namespaces, { name: 'default' }, { signal })
        into().push(performance.now() - from)
        await sleep(20, signal)
      }
    }
    let ended = false
    let attacks = false
    const measured = measure(
      () => (attacks ? waits : idle),
      () => ended,
    )
    await sleep(20_000, signal)
    attacks = true
    const memoryBefore = memoryMiB()
    const end = Date.now() + minutes * 60_000
    let done = 0
    while (Date.now() < end) {
      const { tenant, namespace } = pick(targets)
      const isOther = random() < 0.3
      const uidOf = (kind: string, name: string): string => {
        const known = uids.get(`${tenant}/${namespace} ${kind}/${name}`) ?? ''
        return isOther ? known.replace(/^.{8}/, '66666666') : known
      }
      const forger = new Forger(evil, { cluster: tenant, clusterId: ids[tenant]!, namespace, uidOf }, signal)
      await forger.begin()
      // What refuses is a part of what a member can do.
      await pick(forgeries)
        .write(forger)
        .catch(() => signal.throwIfAborted())
      if (random() < 0.2) await forger.removeOne(random)
      done++
    }
    const below = `${ids['acme']}-signs`
    await untilSeen({ member: evil, up: clients['acme']!, below, namespace: 'signs', deployment: 'own' }, signal)
    ended = true
    await measured
    const record = { done, seed, memoryBefore, memoryAfter: memoryMiB(), idle: spread(idle), waits: spread(waits) }
    console.log(JSON.stringify(record))
    for (const { tenant, namespace } of targets) {
      const content = await contentOf(clients[tenant]!, namespace, signal)
      const found = differences(rest.get(`${tenant}/${namespace}`), content)
      expect(found, `${tenant}/${namespace}`).to.deep.equal([])
      expect(await nodesOf(clients[tenant]!, signal)).to.deep.equal(nodes.get(tenant))
    }
    expect(done).to.be.greaterThan(minutes * 5)
    expect(record.waits.p99, 'ms that a neighbour waits').to.be.lessThan(100 + 2 * record.idle.p99)
    expect(record.memoryAfter - memoryBefore, 'MiB').to.be.lessThan(150)
  })
})

function spread(values: readonly number[]): { readonly p50: number; readonly p99: number; readonly max: number } {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (part: number): number => Math.round(sorted[Math.floor((sorted.length - 1) * part)] ?? 0)
  return { p50: at(0.5), p99: at(0.99), max: at(1) }
}
