// The history of many rounds in which a worker of `kcp apiserver --workers 2` is killed, or paused for a random time, is
// checked, with the store in the host and in an etcd. KCP_HISTORIES says how many rounds; each takes about 15 s.
import { expect } from 'chai'
import { setTimeout as delay } from 'node:timers/promises'
import { recordedRound, settled } from '#test/faults/recorded-round.ts'
import { startReplicas, workersOf, type ReplicaSet, type RunningReplica } from '#test/integration/replicas.ts'
import { openRawClient } from '#test/integration/raw-client.ts'
import { startEtcd, waitFor } from '#test/support/index.ts'

const clusters = ['c0', 'c1', 'c2', 'c3']
const workers = 2
const rounds = Number(process.env['KCP_HISTORIES'] ?? 20)
/** From none to longer than a Lease and its margins; the supervisor kills a worker after 30 s. */
const pausedMs = { least: 100, most: 14_000 }

for (const store of ['host', 'etcd'] as const)
  describe(`histories of ${rounds} rounds with two workers over the store ${store}`, function () {
    this.timeout(rounds * 240_000 + 300_000)
    const stack = new AsyncDisposableStack()
    let set: ReplicaSet
    let server: RunningReplica

    before(async () => {
      const etcd = store === 'etcd' ? stack.use(await startEtcd()) : undefined
      const inEtcd = etcd === undefined ? [] : ['--store', 'etcd', '--etcd-servers', etcd.urls.join()]
      set = stack.use(await startReplicas(1, { apiserverArgs: ['--workers', String(workers), ...inEtcd] }))
      const [first] = set.replicas
      if (first === undefined) throw new Error('no server')
      server = first
      for (const name of clusters) await set.create(name)
    })
    after(() => stack.disposeAsync())

    const whole = async (): Promise<void> => {
      await waitFor(async () => workersOf(server).length === workers && (await set.leases()).length === workers, {
        what: 'both workers to serve',
        deadlineMs: 120_000,
      })
      await settled(set, clusters)
    }

    it('have no lost write, no skipped event and no stale read', async () => {
      let acknowledged = 0
      for (let round = 1; round <= rounds; round++) {
        await whole()
        const isKill = Math.random() < 0.5
        const pid = await set.ownerPidOf('c0')
        const forMs = isKill ? 0 : Math.round(pausedMs.least + Math.random() * (pausedMs.most - pausedMs.least))
        const what = isKill
          ? `round ${round}: a worker is killed`
          : `round ${round}: a worker is paused for ${forMs} ms`
        const seen = await recordedRound(set, {
          clusters,
          // Another object than the server itself: all clients use the one port.
          victim: { ...server },
          stop: () => process.kill(pid, isKill ? 'SIGKILL' : 'SIGSTOP'),
          whileStopped: () => delay(forMs),
          resume: () => (isKill ? whole() : process.kill(pid, 'SIGCONT')),
          mayForget: isKill,
        })
        acknowledged += seen.acknowledged
        console.log(
          `      ${what}; ${seen.acknowledged} writes, ${seen.unknown} unsure, ${seen.expired} watches told 410`,
        )
        expect(seen.unexpected, what).to.deep.equal([])
        expect(seen.violations, what).to.deep.equal([])
      }
      console.log(`      ${rounds} rounds, ${acknowledged} writes acknowledged`)
    })

    it('are whole again after a worker stopped reacting: it is not ready, then killed and started again', async () => {
      await whole()
      const before = workersOf(server)
      const pid = await set.ownerPidOf('c0')
      process.kill(pid, 'SIGSTOP')
      const isUnready = async (): Promise<boolean> => {
        // Without credentials: a tenant is not told why.
        await using client = openRawClient({ port: server.port, host: server.address })
        // A connection to the stopped worker is not answered.
        const { status, text } = await client.request('GET', '/readyz', { signal: AbortSignal.timeout(1500) })
        return status === 500 && text.includes('does not react')
      }
      await waitFor(isUnready, { what: 'the server to be unready', deadlineMs: 25_000 })
      await waitFor(() => !workersOf(server).includes(pid), { what: 'it to be killed', deadlineMs: 60_000 })
      await whole()
      expect(server.process.log()).to.contain('a worker does not react and is killed')
      expect(workersOf(server).filter((one) => before.includes(one))).to.have.length(workers - 1)
    })
  })
