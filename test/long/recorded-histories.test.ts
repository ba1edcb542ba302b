// The history of many rounds in which a replica of `kcp apiserver` is killed, paused or restarted, at random and for a
// random time, is checked. KCP_HISTORIES says how many rounds; each takes about 20 s.
import { expect } from 'chai'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { recordedRound, settled, untilReady } from '#test/faults/recorded-round.ts'
import { startReplicas, type ReplicaSet, type RunningReplica } from '#test/integration/replicas.ts'

const clusters = ['c0', 'c1', 'c2', 'c3']
const rounds = Number(process.env['KCP_HISTORIES'] ?? 100)
/** From none to longer than a Lease and its margins. */
const stoppedMs = { least: 100, most: 14_000 }
const roundMs = 240_000

const start = async (set: ReplicaSet, replica: RunningReplica): Promise<void> => {
  await replica.process.start()
  await untilReady(set, replica)
}
type Act = (replica: RunningReplica, set: ReplicaSet) => unknown
interface Kind {
  readonly title: string
  readonly stop: Act
  readonly resume: Act
  readonly mayForget?: boolean
}
const disturbances: readonly Kind[] = [
  {
    title: 'killed',
    stop: ({ process }) => process.kill(),
    resume: (replica, set) => start(set, replica),
    mayForget: true,
  },
  {
    title: 'paused',
    stop: (replica) => process.kill(replica.process.pid, 'SIGSTOP'),
    resume: (replica) => process.kill(replica.process.pid, 'SIGCONT'),
  },
  { title: 'restarted', stop: ({ process }) => process.stop(), resume: (replica, set) => start(set, replica) },
]

describe(`histories of ${rounds} rounds with three replicas`, function () {
  this.timeout(rounds * roundMs + 300_000)
  const stack = new AsyncDisposableStack()
  let set: ReplicaSet
  before(async () => {
    set = stack.use(await startReplicas(3))
    for (const name of clusters) await set.create(name)
  })
  after(() => stack.disposeAsync())

  it('have no lost write, no skipped event and no stale read', async () => {
    let acknowledged = 0
    for (let round = 1; round <= rounds; round++) {
      await settled(set, clusters)
      const chosen = disturbances[Math.floor(Math.random() * disturbances.length)]
      const victim = set.replicas[Math.floor(Math.random() * set.replicas.length)]
      if (chosen === undefined || victim === undefined) throw new Error('nothing was chosen')
      const forMs = Math.round(stoppedMs.least + Math.random() * (stoppedMs.most - stoppedMs.least))
      const what = `round ${round}: replica ${set.replicas.indexOf(victim)} ${chosen.title} for ${forMs} ms`
      /** When the replica was stopped and went on. */
      const times: number[] = []
      const seen = await recordedRound(set, {
        clusters,
        victim,
        stop: (replica) => {
          times.push(performance.now())
          return chosen.stop(replica, set)
        },
        resume: (replica) => {
          times.push(performance.now())
          return chosen.resume(replica, set)
        },
        whileStopped: () => delay(forMs),
        mayForget: chosen.mayForget ?? false,
      })
      acknowledged += seen.acknowledged
      console.log(
        `      ${what}; ${seen.acknowledged} writes, ${seen.unknown} unsure, ${seen.expired} watches told 410`,
      )
      expect(seen.unexpected, what).to.deep.equal([])
      if (seen.violations.length > 0) {
        const file = join(mkdtempSync(join(tmpdir(), 'kcp-history-')), 'history.json')
        writeFileSync(file, JSON.stringify({ what, times, history: seen.history }))
        expect(seen.violations, `${what}; history in ${file}`).to.deep.equal([])
      }
    }
    console.log(`      ${rounds} rounds, ${acknowledged} writes acknowledged`)
  })
})
