// kcp start under load, killed at random moments and restarted on the same directory: the recorded history is checked.
import { expect } from 'chai'
import { setTimeout as delay } from 'node:timers/promises'
import { startInstance, type KcpInstance } from '#test/integration/kcp-instance.ts'
import { rounds, waitFor } from '#test/support/index.ts'
import { violationsOf } from './checker.ts'
import { openClient } from './client.ts'
import { Recorder, type Place } from './recorder.ts'

const kills = rounds({ short: 5, long: 20 })
const writersPerPlace = 5
/** Minimum and maximum of acknowledged writes between two kills. */
const load = [20, 150] as const

describe('kcp start, killed with -9 under load', function () {
  // Takes a minute on two idle cores.
  this.timeout(600_000)
  const stack = new AsyncDisposableStack()
  const places: Place[] = []
  let everything: Place
  let kcp: KcpInstance

  before(async () => {
    kcp = stack.use(await startInstance())
    for (const cluster of ['acme', 'bob', 'carol'])
      places.push({ cluster, client: stack.use(openClient((await kcp.tenant(cluster)).kubeconfig)) })
    everything = { cluster: '*', client: stack.use(openClient(kcp.admin.kubeconfig, '/clusters/*')) }
  })
  after(() => stack.disposeAsync())

  it(`${kills} times: loses no acknowledged write, shows none in part, skips no watch event, mixes no logical clusters`, async () => {
    const seed = Date.now() % 1_000_000
    const recorder = new Recorder(seed)
    const over = new AbortController()
    const watching = [...places, everything].flatMap((place) => [
      recorder.watch(place, {
        title: `${place.cluster} with bookmarks`,
        query: 'allowWatchBookmarks=true&timeoutSeconds=2',
        breaks: 0,
        signal: over.signal,
      }),
      recorder.watch(place, { title: `${place.cluster} without`, query: '', breaks: 37, signal: over.signal }),
    ])
    const began = performance.now()
    for (let kill = 0; kill < kills; kill++) {
      let stopped = false
      const isStopped = (): boolean => stopped
      const [busy, other, quiet] = places as [Place, Place, Place]
      const loads = [
        ...[busy, other].flatMap((place) =>
          Array.from({ length: writersPerPlace }, (_, writer) => recorder.write(place, writer, isStopped)),
        ),
        recorder.write(quiet, 0, isStopped),
        ...[...places, everything].map((place) => recorder.read(place, isStopped)),
      ]
      const [least, most] = load
      const enough = recorder.acknowledged + least + recorder.random() * (most - least)
      while (recorder.acknowledged < enough) await delay(1)
      recorder.goingDown()
      await kcp.process.kill()
      stopped = true
      await Promise.all(loads)
      recorder.gone()
      await kcp.process.start()
      await recorder.restarted([...places, everything])
    }
    const tookMs = performance.now() - began
    const marks: number[] = []
    for (const place of places) marks.push(await recorder.mark(place, 's1-end'))
    const end = Math.max(...marks)
    await waitFor(
      () =>
        recorder
          .positions()
          .every(({ cluster, revision }) => revision >= (cluster === '*' ? end : (marks[indexOf(cluster)] ?? end))),
      { what: `every watch to be at its end: ${JSON.stringify(recorder.positions())}`, deadlineMs: 20_000 },
    )
    for (const place of [...places, everything]) await recorder.list(place)
    over.abort()
    await Promise.all(watching)
    const { writes, lists, watches } = recorder.history
    const count = (is: string): number => writes.filter(({ outcome }) => outcome.is === is).length
    const events = watches.flatMap(({ epochs }) =>
      epochs.flatMap(({ sessions }) => sessions.map((s) => s.entries.length)),
    )
    console.log(
      `      seed ${seed}: ${kills} kills in ${Math.round(tookMs / 1000)} s, ${count('done')} writes acknowledged, ` +
        `${count('refused')} refused, ${count('unknown')} unknown, ${lists.length} lists, ` +
        `${events.reduce((a, b) => a + b, 0)} events in ${events.length} watches`,
    )
    expect(recorder.unexpected).to.deep.equal([])
    expect(violationsOf(recorder.history)).to.deep.equal([])
    expect(recorder.expired, 'watches told 410').to.equal(0)
    expect(count('done')).to.be.greaterThan(kills * 20)
  })

  function indexOf(cluster: string): number {
    return places.findIndex((place) => place.cluster === cluster)
  }
})
