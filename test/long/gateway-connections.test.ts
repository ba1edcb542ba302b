// A gateway under 100,000 connections that ask for nothing: at its port for peers, at a port for pods and at its health
// port. Others pass meanwhile, readiness tells the truth, and nothing stays.
import { readFileSync, readdirSync } from 'node:fs'
import { expect } from 'chai'
import { freePort, waitFor, type ManagedProcess } from '#test/support/index.ts'
import { openHostileConnections } from '#test/integration/gateway/hostile-connections.ts'
import {
  acme,
  addPod,
  addRemoteSlice,
  ask,
  echo,
  giveIdentity,
  listenAsPod,
  newIdentity,
  playMember,
  readyz,
  setLocalSlice,
  startGatewayOf,
  tellOfPeer,
  untilAnswer,
  type PlayedMember,
} from '#test/integration/gateway/played-members.ts'

const connections = 100_000
/** Of those who use the gateway meanwhile: who opens connections takes processors of the same machine. */
const maxP99Ms = 1000
/** Half of what a pod of the gateway may have. */
const maxGrowthBytes = 256 * 1024 * 1024

describe('a gateway under connections that ask for nothing', function () {
  this.timeout(1_800_000)
  const stack = new AsyncDisposableStack()
  let west: PlayedMember
  let gateway: ManagedProcess
  let port: number
  /** The address of a pod of acme in east. */
  const pod = '127.0.12.1'

  before(async () => {
    const east = await playMember('east', stack)
    west = await playMember('west', stack)
    for (const [one, other] of [
      [east, west],
      [west, east],
    ] as const) {
      const identity = await newIdentity(one.name)
      await giveIdentity(one, identity)
      await tellOfPeer(other, one, { certificates: [identity.current.certificate], clusters: [acme] })
    }
    await addPod(east, { clusterId: acme, name: 'client', address: pod })
    gateway = stack.use(await startGatewayOf(west))
    stack.use(await startGatewayOf(east))
    const podPort = await listenAsPod(west.address, echo, stack)
    await setLocalSlice(west, { clusterId: acme, service: 'web', port: podPort }, { hasPod: true })
    port = await freePort('0.0.0.0')
    await addRemoteSlice(east, west, { clusterId: acme, service: 'web', port })
    await untilAnswer(port, 'hello', pod)
  })
  after(async () => await stack.disposeAsync())

  const rss = (): number =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${gateway.pid}/status`, 'utf8'))?.[1]) * 1024
  const files = (): number => readdirSync(`/proc/${gateway.pid}/fd`).length

  for (const { title, target, share } of [
    { title: 'its port for peers', target: () => west.gatewayPort, share: 0.9 },
    { title: 'its health port', target: () => west.healthPort, share: 0.1 },
  ])
    it(`lets others pass, and keeps nothing, at ${title}`, async () => {
      const [memoryBefore, filesBefore] = [rss(), files()]
      const attackEnds = new AbortController()
      const attack = openHostileConnections({ port: target(), count: connections * share, parallel: 60, seed: 1 })
      void attack.finally(() => attackEnds.abort())
      const waits: number[] = []
      const failures: string[] = []
      let [mostMemory, mostFiles] = [0, 0]
      while (!attackEnds.signal.aborted) {
        const began = performance.now()
        const response = await ask(port, pod)
        waits.push(performance.now() - began)
        if (response !== 'hello') failures.push(response)
        const ready = await readyz(west)
        // It takes connections, and says so.
        if (ready !== 200) failures.push(`readyz ${ready}`)
        mostMemory = Math.max(mostMemory, rss())
        mostFiles = Math.max(mostFiles, files())
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
      waits.sort((a, b) => a - b)
      const p99 = waits[Math.floor(waits.length * 0.99)] ?? 0
      const text = `${waits.length} calls, p50 ${waits[waits.length >> 1]?.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms, ${mostFiles} files`
      console.log(`      ${text}, ${((mostMemory - memoryBefore) / 2 ** 20).toFixed(0)} MiB more`)
      expect(failures, text).to.deep.equal([])
      expect(p99, text).to.be.below(maxP99Ms)
      expect(mostMemory - memoryBefore, text).to.be.below(maxGrowthBytes)
      const { open } = await attack
      await waitFor(() => open.size === 0 && files() <= filesBefore + 10, {
        what: 'the gateway to close what asks for nothing',
        deadlineMs: 30_000,
      })
      expect(await ask(port, pod)).to.equal('hello')
    })
})
