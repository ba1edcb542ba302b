// Measures what counting usage costs: requests to a `kcp start` that counts nothing, to one that counts as it does by
// default, and to a logical cluster with limits there, in turns within one run; and the rows of many logical clusters.
import { sleep } from '#async/index.ts'
import { inParallel } from './in-parallel.ts'
import { startKcpUnderTest } from './kcp-under-test.ts'
import { openEndpoint, type Endpoint } from './load.ts'
import { firstNamespaces, logicalCluster, logicalClusters } from './logical-clusters.ts'
import type { Measurement } from './measurement.ts'
import { median, rounded } from './statistics.ts'
import { cpuOf, prepareObject, writeAndRead } from './write-and-read.ts'

const [rounds, requests] = [12, 150]
/** Logical clusters whose rows are written each second, sixty times as often as by default. */
const [many, idleSeconds] = [300, 20]

const ways = ['off', 'counted', 'counted, with limits'] as const

export const usage: Measurement = {
  name: 'usage',
  describes: 'requests without counting of usage, with it, and with limits; rows of 300 logical clusters each second',
  async run({ signal, say }) {
    await using stack = new AsyncDisposableStack()
    const [without, counting] = [
      stack.use(await startKcpUnderTest({ args: ['--usage-every', '0'] })),
      stack.use(await startKcpUnderTest()),
    ]
    const open = async (kcp: typeof without, name: string): Promise<Endpoint> => {
      const tenant = stack.use(openEndpoint(await kcp.tenantKubeconfig(name), { connections: 1 }))
      await prepareObject(tenant)
      return tenant
    }
    const of = [
      { way: ways[0], pid: without.pid, tenant: await open(without, 'user') },
      { way: ways[1], pid: counting.pid, tenant: await open(counting, 'user') },
      { way: ways[2], pid: counting.pid, tenant: await open(counting, 'limited') },
    ] as const
    await limit(stack.use(openEndpoint(counting.adminKubeconfig, { connections: 1 })), 'limited')
    const taken = new Map(ways.map((way) => [way, { ms: [] as number[], cpu: 0 }]))
    // The first round warms up.
    for (let round = 0; round <= rounds; round++) {
      // In another order each time: what comes later in a round is slower on a machine that gets busy.
      for (const { way, pid, tenant } of [...of.slice(round % 3), ...of.slice(0, round % 3)]) {
        const before = cpuOf(pid)
        const ms = await writeAndRead(tenant, requests)
        const known = taken.get(way)
        if (round === 0 || known === undefined) continue
        known.ms.push(...ms)
        known.cpu += ((cpuOf(pid) - before) * 1000) / requests / rounds
      }
      say(`round ${round} of ${rounds}`)
    }
    const numbers: Record<string, number> = {}
    const off = taken.get('off')
    for (const [way, { ms, cpu }] of taken) {
      numbers[`${way}: median ms`] = rounded(median(ms))
      numbers[`${way}: CPU ms`] = rounded(cpu)
      if (way === 'off' || off === undefined) continue
      numbers[`${way}: ratio`] = rounded(median(ms) / median(off.ms))
      numbers[`${way}: ratio of CPU`] = rounded(cpu / off.cpu)
    }
    say(`${many} logical clusters`)
    for (const [name, every] of [
      ['no rows', '0'],
      ['rows each second', '1'],
    ] as const)
      numbers[`${many} in memory, ${name}: CPU ms a second`] = rounded(await idleCpu(every, signal))
    return numbers
  },
}

/** Milliseconds of processor time in a second while nobody asks for anything. */
async function idleCpu(every: string, signal: AbortSignal): Promise<number> {
  await using kcp = await startKcpUnderTest({ args: ['--usage-every', every] })
  await using root = openEndpoint(kcp.adminKubeconfig, { connections: 8 })
  await using all = openEndpoint(kcp.adminKubeconfig, { connections: 8, base: '/clusters' })
  const names = Array.from({ length: many }, (_, i) => `c-${i}`)
  await inParallel(names, 8, async (name) => {
    await root.json('POST', logicalClusters, logicalCluster(name))
    await firstNamespaces(all, name)
  })
  await sleep(5000, signal)
  const before = cpuOf(kcp.pid)
  await sleep(idleSeconds * 1000, signal)
  return ((cpuOf(kcp.pid) - before) * 1000) / idleSeconds
}

/** Sets limits that are never reached. */
async function limit(root: Endpoint, name: string): Promise<void> {
  const path = `${logicalClusters}/${name}`
  const found = (await root.json('GET', path)) as { spec?: object }
  const limits = { objects: 100_000, storage: '1Gi', watches: 1000, requestsPerSecond: 100_000 }
  await root.json('PUT', path, JSON.stringify({ ...found, spec: { ...found.spec, limits } }))
}
