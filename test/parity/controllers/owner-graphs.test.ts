// Compares what garbage collection leaves of random graphs of owners with what kube-controller-manager leaves.
import { expect } from 'chai'
import { diceOf } from '#test/parity/generated/dice.ts'
import { startTwoServers, type TwoServers } from '#test/parity/support/two-servers.ts'
import { isLongRun, waitFor } from '#test/support/index.ts'
import { BuiltGraph, randomGraph } from './owner-graphs.ts'

const firstSeed = Number(process.env['KCP_SEED'] ?? 1)
const graphs = isLongRun ? 40 : 2
const size = 30
const deletions = isLongRun ? 8 : 3
const atOnce = 6

describe('garbage collection of random graphs', function () {
  this.timeout(isLongRun ? 1_200_000 : 400_000)
  let servers: TwoServers
  /** A second try of the test has names of its own. */
  let tries = 0
  before(async () => {
    servers = await startTwoServers({ name: 'owners', controllerManager: true })
  })
  after(() => servers[Symbol.asyncDispose]())

  it(`leaves what a real cluster leaves, ${graphs} graphs of ${size} objects`, async () => {
    const name = (seed: number): string => (tries === 0 ? `graph-${seed}` : `graph-${seed}-${tries}`)
    const compare = (seed: number): Promise<void> => compareGraph(seed, name(seed))
    for (let first = firstSeed; first < firstSeed + graphs; first += atOnce) {
      const seeds = Array.from({ length: Math.min(atOnce, firstSeed + graphs - first) }, (_, i) => first + i)
      const played = await Promise.allSettled(seeds.map(compare))
      const failure = played.find((each) => each.status === 'rejected')
      if (failure === undefined) continue
      tries++
      throw failure.reason
    }
  })

  async function compareGraph(seed: number, name: string): Promise<void> {
    const graph = randomGraph(diceOf(seed), name, { size, deletions })
    const sides = [new BuiltGraph(servers.real, graph), new BuiltGraph(servers.ours, graph)] as const
    await Promise.all(sides.map((side) => side.build()))
    await settle(sides, `${name}-built`)
    for (const [i, deletion] of graph.deletions.entries()) {
      await Promise.all(sides.map((side) => side.delete(deletion)))
      await settle(sides, `${name}-deleted-${i}`)
    }
  }

  /** Waits until both have the same objects, and still have them after the collectors were seen at work twice more. */
  async function settle([real, ours]: readonly [BuiltGraph, BuiltGraph], what: string): Promise<void> {
    let before = ''
    let attempt = 0
    let states: readonly Record<string, string>[] = []
    const probe = async (): Promise<boolean> => {
      const name = `sentinel-${what}-${attempt++}`
      const until = (condition: () => Promise<boolean>): Promise<unknown> =>
        waitFor(condition, { what: name, deadlineMs: 60_000, intervalMs: 50 })
      await Promise.all([real, ours].map((side) => side.sentinel(name, until)))
      states = await Promise.all([real.state(), ours.state()])
      const [now, same] = states.map((state) => JSON.stringify(Object.entries(state).sort()))
      const settled = now === same && now === before
      before = now ?? ''
      return settled
    }
    await waitFor(probe, { what: `equal objects (${what})`, deadlineMs: 100_000, intervalMs: 10 }).catch(() => {
      const [theirs = {}, ours = {}] = states
      const differing = [...new Set([...Object.keys(theirs), ...Object.keys(ours)])].filter(
        (name) => theirs[name] !== ours[name],
      )
      const text = differing.map((name) => `${name}: ${theirs[name] ?? 'gone'} there, ${ours[name] ?? 'gone'} here`)
      expect(text, what).to.deep.equal([])
      throw new Error(`the objects of "${what}" do not settle`)
    })
  }
})
