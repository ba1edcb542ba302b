// Measures what the audit log of a logical cluster costs its users and its neighbours: without, at level Metadata and at
// level RequestResponse, in turns within one run.
import { sleep } from '#async/index.ts'
import { startKcpUnderTest } from './kcp-under-test.ts'
import { openEndpoint, type Endpoint } from './load.ts'
import { logicalClusters } from './logical-clusters.ts'
import type { Measurement } from './measurement.ts'
import { median, rounded } from './statistics.ts'
import { cpuOf, prepareObject, writeAndRead } from './write-and-read.ts'

const levels = ['off', 'Metadata', 'RequestResponse'] as const
type Level = (typeof levels)[number]

const [rounds, requests] = [12, 150]

export const audit: Measurement = {
  name: 'audit',
  describes: 'requests of a logical cluster with spec.audit off, at Metadata, at RequestResponse; and of its neighbour',
  async run({ signal, say }) {
    await using kcp = await startKcpUnderTest()
    await using root = openEndpoint(kcp.adminKubeconfig, { connections: 1 })
    await using user = openEndpoint(await kcp.tenantKubeconfig('user'), { connections: 1 })
    await using near = openEndpoint(await kcp.tenantKubeconfig('near'), { connections: 1 })
    for (const tenant of [user, near]) await prepareObject(tenant)
    const taken = new Map<string, number[]>()
    const note = (key: string, ms: readonly number[]): void => {
      const known = taken.get(key) ?? []
      known.push(...ms)
      taken.set(key, known)
    }
    // The first round warms up.
    for (let round = 0; round <= rounds; round++) {
      // In another order each time: what comes later in a round is slower on a machine that gets busy.
      for (const level of [...levels.slice(round % 3), ...levels.slice(0, round % 3)]) {
        await choose(root, level)
        await sleep(200, signal)
        // One after the other: at the same time, both would share the event loop, and one the time of the other.
        const cpu = [cpuOf(kcp.pid)]
        const ofUser = await writeAndRead(user, requests)
        cpu.push(cpuOf(kcp.pid))
        const ofNear = await writeAndRead(near, requests)
        cpu.push(cpuOf(kcp.pid))
        if (round === 0) continue
        const [before = 0, between = 0, end = 0] = cpu
        note(`user, ${level}, CPU`, [((between - before) * 1000) / requests])
        note(`neighbour, ${level}, CPU`, [((end - between) * 1000) / requests])
        note(`user, ${level}`, ofUser)
        note(`neighbour, ${level}`, ofNear)
      }
      say(`round ${round} of ${rounds}`)
    }
    const numbers: Record<string, number> = {}
    for (const who of ['user', 'neighbour'])
      for (const level of levels) {
        const of = (one: Level): number => median(taken.get(`${who}, ${one}`) ?? [])
        const cpu = (one: Level): number =>
          (taken.get(`${who}, ${one}, CPU`) ?? []).reduce((sum, ms) => sum + ms, 0) / rounds
        numbers[`${who}, ${level}: median ms`] = rounded(of(level))
        numbers[`${who}, ${level}: CPU ms`] = rounded(cpu(level))
        if (level === 'off') continue
        numbers[`${who}, ${level}: ratio`] = rounded(of(level) / of('off'))
        numbers[`${who}, ${level}: ratio of CPU`] = rounded(cpu(level) / cpu('off'))
      }
    return numbers
  },
}

async function choose(root: Endpoint, level: Level): Promise<void> {
  const path = `${logicalClusters}/user`
  const found = (await root.json('GET', path)) as { spec?: object }
  const spec = level === 'off' ? null : { readable: true, rules: [{ level }] }
  const { audit: _, ...rest } = { audit: undefined, ...found.spec }
  await root.json('PUT', path, JSON.stringify({ ...found, spec: { ...rest, ...(spec && { audit: spec }) } }))
}
