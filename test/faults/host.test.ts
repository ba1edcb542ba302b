// The host store under load: kcp apiserver, the host's kube-apiserver and its etcd are killed in turn, and the recorded
// history is checked. Tenants connect directly and through the host's aggregated API.
import { expect } from 'chai'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createLogicalCluster, installOnHost, type Installation } from '#test/e2e/installation.ts'
import { rounds, runKcp, startCluster, waitFor, type Cluster, type ManagedProcess } from '#test/support/index.ts'
import { violationsOf } from './checker.ts'
import { openClient } from './client.ts'
import { Recorder, type Place } from './recorder.ts'

/** Of each: how often it is killed; on a machine that is busy with other things less often, but once. */
const outages = rounds({ short: 1, long: 3 })
const enoughMs = 60_000
const writersPerPlace = 3
/** Minimum and maximum of acknowledged writes between two kills. */
const load = [15, 60] as const
/** Until every killed process answers again; a loaded machine takes its time. */
const recoveryMs = 120_000

describe("kcp on a host, when its processes and the host's are killed with -9 under load", function () {
  this.timeout(600_000)
  const stack = new AsyncDisposableStack()
  const places: Place[] = []
  let host: Cluster
  let installation: Installation

  before(async () => {
    host = stack.use(await startCluster({ name: 'host' }))
    installation = stack.use(await installOnHost({ host }))
    const dir = mkdtempSync(join(tmpdir(), 'kcp-faults-'))
    stack.defer(() => rmSync(dir, { recursive: true, force: true }))
    for (const name of ['acme', 'bob']) await createLogicalCluster(installation, name, `${name}-admin`)
    const throughHost = await installation.tenant('acme', 'acme-admin')
    const direct = join(dir, 'bob.kubeconfig')
    const { stdout } = await runKcp(['kubeconfig', 'bob', ...installation.flags])
    writeFileSync(direct, stdout, { mode: 0o600 })
    places.push({ cluster: 'acme', client: stack.use(openClient(throughHost)) })
    places.push({ cluster: 'bob', client: stack.use(openClient(direct)) })
    await answering()
  })
  after(() => stack.disposeAsync())

  it('loses no acknowledged write, shows none in part, and skips no watch event', async () => {
    const seed = Date.now() % 1_000_000
    const recorder = new Recorder(seed)
    const over = new AbortController()
    const watching = places.flatMap((place) => [
      recorder.watch(place, {
        title: `${place.cluster} with bookmarks`,
        query: 'allowWatchBookmarks=true&timeoutSeconds=2',
        breaks: 0,
        signal: over.signal,
      }),
      recorder.watch(place, { title: `${place.cluster} without`, query: '', breaks: 37, signal: over.signal }),
    ])
    const recoveries: string[] = []
    const begun = performance.now()
    for (const { round, ...victim } of Array.from({ length: outages }, (_, number) => victims(number)).flat()) {
      if (round > 0 && performance.now() - begun > enoughMs) break
      let stopped = false
      const isStopped = (): boolean => stopped
      const loads = places.flatMap((place) => [
        ...Array.from({ length: writersPerPlace }, (_, writer) => recorder.write(place, writer, isStopped)),
        recorder.read(place, isStopped),
      ])
      const [least, most] = load
      const enough = recorder.acknowledged + least + recorder.random() * (most - least)
      await waitFor(() => recorder.acknowledged >= enough, { what: 'writes under load', deadlineMs: recoveryMs })
      recorder.goingDown()
      const began = performance.now()
      await victim.process.kill()
      // Long enough for some requests to fail to connect.
      await delay(recorder.random() * 500)
      await victim.process.start()
      stopped = true
      await Promise.all(loads)
      await answering()
      recoveries.push(`${victim.name} ${Math.round(performance.now() - began)} ms`)
      // A restart of the host does not restart the server of the tenants' watches: no event may be missing then.
      if (victim.name === 'kcp') await recorder.restarted(places)
      else recorder.resumed()
    }
    const marks: number[] = []
    for (const place of places) marks.push(await recorder.mark(place, 's1-end'))
    expect(marks.every((mark) => mark > 0)).to.equal(true)
    await waitFor(
      () =>
        recorder
          .positions()
          .every(({ cluster, revision }) => revision >= (marks[places.findIndex((p) => p.cluster === cluster)] ?? 0)),
      { what: `every watch to be at its end: ${JSON.stringify(recorder.positions())}`, deadlineMs: 60_000 },
    )
    for (const place of places) await recorder.list(place)
    over.abort()
    await Promise.all(watching)
    const { history, acknowledged, expired, unexpected } = recorder
    const unknown = history.writes.filter(({ outcome }) => outcome.is === 'unknown').length
    console.log(
      `      seed ${seed}: ${acknowledged} writes acknowledged, ${unknown} without an answer, ${history.lists.length} lists, ` +
        `${expired} watches told 410; back after ${recoveries.join(', ')}`,
    )
    expect(acknowledged).to.be.at.least(recoveries.length * load[0])
    expect(unexpected).to.deep.equal([])
    expect(violationsOf(history)).to.deep.equal([])
    // Processes that were not killed are still running.
    for (const { running, spec } of installation.processes) expect(running, spec.name).to.equal(true)
  })

  /** In this order, so that each is killed in the state that the previous kill left. */
  function victims(round: number): { name: string; process: ManagedProcess; round: number }[] {
    const [apiserver] = installation.processes
    return [
      { name: 'kcp', process: required(apiserver, 'kcp apiserver'), round },
      { name: 'kube-apiserver', process: required(host.processes.get('kube-apiserver'), 'kube-apiserver'), round },
      { name: 'etcd', process: required(host.processes.get('etcd'), 'etcd'), round },
    ]
  }

  /** Resolves once every logical cluster accepts writes; the probe itself writes nothing that is recorded. */
  async function answering(): Promise<void> {
    for (const { cluster, client } of places) {
      const namespace = { metadata: { name: 'canary' } }
      const responses = async (): Promise<boolean> => {
        const { status } = await client.request('POST', '/api/v1/namespaces', { body: namespace })
        return status === 201 || status === 409
      }
      const patched = async (): Promise<boolean> => {
        const body = { metadata: { annotations: { canary: String(performance.now()) } } }
        const contentType = 'application/merge-patch+json'
        return (await client.request('PATCH', '/api/v1/namespaces/canary', { body, contentType })).status === 200
      }
      await waitFor(async () => (await responses().catch(() => false)) && (await patched().catch(() => false)), {
        what: `"${cluster}" to take writes`,
        deadlineMs: recoveryMs,
      })
    }
  }
})

function required<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`the host has no ${what} to kill`)
  return value
}
