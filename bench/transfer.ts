// Measures the move of a logical cluster to another installation under writes: how long writes wait, and what goes over.
import { dirname } from 'node:path'
import { runKcp } from '#test/support/index.ts'
import { inParallel } from './in-parallel.ts'
import { startKcpUnderTest } from './kcp-under-test.ts'
import { openEndpoint, type Endpoint } from './load.ts'
import type { Measurement } from './measurement.ts'
import { rounded } from './statistics.ts'

const objects = Number(process.env['KCP_BENCH_OBJECTS'] ?? 10_000)
const [writesPerSecond, lanes] = [200, 8]
const configMaps = '/api/v1/namespaces/default/configmaps'

/** A logical cluster with 10,000 objects under 200 writes/s goes from one `kcp start` to another. */
export const transfer: Measurement = {
  name: 'transfer',
  describes: `a logical cluster with ${objects} objects under ${writesPerSecond} writes/s goes to another installation: pause of writes, seconds, bytes`,
  async run({ say }) {
    await using source = await startKcpUnderTest()
    await using target = await startKcpUnderTest()
    await using tenant = openEndpoint(await source.tenantKubeconfig('large'), { connections: 16 })
    const names = Array.from({ length: objects }, (_, i) => `c-${i}`)
    await inParallel(names, 16, async (name) => {
      const data = { text: 'x'.repeat(600) }
      await tenant.json('POST', configMaps, JSON.stringify({ metadata: { name }, data }))
    })
    say(`${objects} objects are there`)
    const writing = writer(tenant)
    await new Promise((resolve) => setTimeout(resolve, 2000))
    const began = performance.now()
    const args = ['transfer', 'large', '--root-dir', dirname(source.adminKubeconfig), '--to', target.adminKubeconfig]
    const { stdout } = await runKcp(args)
    const seconds = (performance.now() - began) / 1000
    say(stdout)
    await new Promise((resolve) => setTimeout(resolve, 2000))
    const { writes, longestMs, refusals } = await writing.end()
    const [, pause = 'NaN'] = /writes waited for ([0-9]+) ms/.exec(stdout) ?? []
    const sent = [...stdout.matchAll(/([0-9]+) bytes/g)].reduce((sum, [, bytes]) => sum + Number(bytes), 0)
    return {
      'seconds from the command to its end': rounded(seconds),
      'pause of writes, as the command tells: ms': Number(pause),
      'longest time from one acknowledged write to the next: ms': rounded(longestMs),
      'writes that were refused and repeated': refusals,
      'writes acknowledged': writes,
      'MiB of objects that went over': rounded(sent / 2 ** 20),
    }
  },
}

/** Changes objects at a rate, and repeats what is refused, until it is ended. */
function writer(tenant: Endpoint): {
  end(): Promise<{ writes: number; longestMs: number; refusals: number }>
} {
  let isOver = false
  let [writes, refusals, longestMs] = [0, 0, 0]
  let lastMs = performance.now()
  const write = async (lane: number): Promise<void> => {
    const began = performance.now()
    for (let i = 0; !isOver; i++) {
      const name = `c-${(i * lanes + lane) % objects}`
      const body = JSON.stringify({ metadata: { name }, data: { n: `${i}`, text: 'x'.repeat(600) } })
      for (;;) {
        const { status } = await tenant.request('PUT', `${configMaps}/${name}`, body)
        if (status === 200) break
        if (status !== 503) throw new Error(`a write was answered with ${status}`)
        refusals++
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
      const now = performance.now()
      longestMs = Math.max(longestMs, now - lastMs)
      lastMs = now
      writes++
      const ahead = (i * 1000 * lanes) / writesPerSecond - (now - began)
      if (ahead > 0) await new Promise((resolve) => setTimeout(resolve, ahead))
    }
  }
  const running = Promise.all(Array.from({ length: lanes }, (_, lane) => write(lane)))
  return {
    async end() {
      isOver = true
      await running
      return { writes, longestMs, refusals }
    },
  }
}
