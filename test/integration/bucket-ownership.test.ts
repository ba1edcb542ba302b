// Several replicas share buckets through Leases of a real host, while they come, go, crash, and lose their connection.
import { expect } from 'chai'
import { setTimeout as delay } from 'node:timers/promises'
import { createClient, httpTransport, loadKubeconfig, type Transport } from '#client/index.ts'
import { bucketCount, BucketOwnership, leases, replicaSelector, type ReplicaLease } from '#store/ownership/index.ts'
import { createLogger } from '#telemetry/index.ts'
import { rounds, startCluster, waitFor, type Cluster } from '#test/support/index.ts'

const { signal } = new AbortController()
const namespace = 'default'
const deadlineMs = 20_000
const times = { leaseMs: 1500, renewMs: 250, marginMs: 200, drainMs: 300, aloneAfterMs: 1000, aloneLeaseMs: 5000 }
const log = createLogger({ level: 'error' })

describe('replicas that share buckets', function () {
  this.timeout(180_000)
  let host: Cluster
  let transport: Transport
  const open = new Set<Replica>()
  let started = 0

  before(async () => {
    host = await startCluster({ name: 'host' })
    transport = httpTransport(await loadKubeconfig({ file: host.kubeconfig }, { trusted: true }))
  })
  afterEach(async () => {
    for (const replica of open) await replica.end()
    open.clear()
    const client = createClient(transport)
    for (const { metadata } of (await client.list(leases, { namespace, labelSelector: replicaSelector, signal })).items)
      await client.delete(leases, { namespace, name: metadata.name ?? '' }, { signal })
  })
  after(async () => {
    await transport[Symbol.asyncDispose]()
    await host.stop()
  })

  /** A replica whose connection to the host can be cut: requests then wait, as those of a paused process do. */
  class Replica {
    readonly life = new AbortController()
    readonly name = `replica-${++started}`
    #cut: PromiseWithResolvers<undefined> | undefined
    readonly ownership: BucketOwnership

    constructor() {
      const cuttable: Transport = {
        request: async (request) => {
          if (this.#cut !== undefined) await Promise.race([this.#cut.promise, rejection(request.signal)])
          const response = await transport.request(request)
          return { ...response, body: this.#unlessCut(response.body, request.signal) }
        },
        upgrade: (request) => transport.upgrade(request),
        [Symbol.asyncDispose]: () => Promise.resolve(),
      }
      const options = { client: createClient(cuttable), namespace, name: this.name, address: 'h:1', log, ...times }
      this.ownership = new BucketOwnership({ ...options, signal: this.life.signal })
      open.add(this)
    }

    /** What open watches receive waits too. */
    async *#unlessCut(body: AsyncIterable<Uint8Array>, aborted: AbortSignal): AsyncGenerator<Uint8Array> {
      for await (const chunk of body) {
        if (this.#cut !== undefined) await Promise.race([this.#cut.promise, rejection(aborted)])
        yield chunk
      }
    }

    cut(): void {
      this.#cut ??= Promise.withResolvers()
    }

    mend(): void {
      this.#cut?.resolve(undefined)
      this.#cut = undefined
    }

    async end(): Promise<void> {
      this.mend()
      open.delete(this)
      await this.ownership[Symbol.asyncDispose]()
      this.life.abort()
    }
  }

  const start = async (): Promise<Replica> => {
    const replica = new Replica()
    await replica.ownership.start(signal)
    return replica
  }
  const untilLeaseLasts = ({ name }: Replica, ms: number): Promise<true> =>
    waitFor(
      async () => {
        const lease = await createClient(transport).get<ReplicaLease>(leases, { namespace, name }, { signal })
        return lease.spec?.leaseDurationSeconds === ms / 1000
      },
      { what: `a Lease of ${ms} ms`, deadlineMs },
    )
  const sizes = (): number[] => [...open].map(({ ownership }) => ownership.size)
  const sum = (): number => sizes().reduce((total, size) => total + size, 0)
  const allOwned = (): Promise<true> =>
    waitFor(() => sum() === bucketCount, { what: 'all buckets to be owned', deadlineMs })

  it('has all of them if it is alone, at once', async () => {
    const { ownership } = await start()
    expect(ownership.size).to.equal(bucketCount)
    expect(ownership.isShared).to.equal(false)
  })

  it('spread them evenly, and route every bucket to the one that has it', async () => {
    const replicas = [await start(), await start(), await start()]
    await allOwned()
    await waitFor(() => Math.max(...sizes()) / Math.min(...sizes()) <= 1.3, { what: 'an even spread', deadlineMs })
    await allOwned()
    const wrong = (): number[] =>
      Array.from({ length: bucketCount }, (_, bucket) => bucket).filter((bucket) => {
        const owner = replicas.find(({ ownership }) => ownership.isHeld(bucket))
        return replicas.some((one) => one !== owner && one.ownership.ownerOf(bucket)?.name !== owner?.name)
      })
    await waitFor(() => wrong().length === 0, { what: 'every route to be right', deadlineMs })
  })

  it('take over at once from one that leaves, and soon from one that is cut off', async () => {
    const [first, second] = [await start(), await start()]
    await allOwned()
    let began = performance.now()
    await first.end()
    await allOwned()
    expect(performance.now() - began).to.be.lessThan(1000)
    expect(second.ownership.size).to.equal(bucketCount)
    const third = await start()
    await allOwned()
    second.cut()
    began = performance.now()
    await waitFor(() => third.ownership.size === bucketCount, { what: 'a takeover', deadlineMs })
    expect(performance.now() - began).to.be.within(500, times.leaseMs + times.marginMs + times.renewMs + 2000)
    second.mend()
    await waitFor(() => second.ownership.size > 0 && sum() === bucketCount, {
      what: 'the return of a replica',
      deadlineMs,
    })
  })

  it('keep what they have over a short outage, with the requests inside', async () => {
    const replica = await start()
    const { ownership } = replica
    const tenure = ownership.enter(3)
    replica.cut()
    await waitFor(() => !ownership.isHeld(3), { what: 'the Lease to end', deadlineMs })
    expect(tenure?.isValid()).to.equal(false)
    replica.mend()
    await waitFor(() => ownership.isHeld(3), { what: 'the Lease to be renewed', deadlineMs })
    expect(tenure?.isValid()).to.equal(true)
  })

  it('answer on over an outage if they have been alone for long, and others wait for that', async () => {
    const first = await start()
    await untilLeaseLasts(first, times.aloneLeaseMs)
    first.cut()
    const began = performance.now()
    const second = await start()
    await waitFor(() => !first.ownership.isHeld(3), { what: 'the long Lease to end', deadlineMs })
    expect(performance.now() - began).to.be.at.least(times.leaseMs + times.marginMs + times.renewMs)
    await waitFor(() => second.ownership.size === bucketCount, { what: 'a takeover', deadlineMs })
    expect(first.ownership.isHeld(3)).to.equal(false)
  })

  it('are taken over as soon as others once they are not alone any more', async () => {
    const first = await start()
    await untilLeaseLasts(first, times.aloneLeaseMs)
    const second = await start()
    await untilLeaseLasts(first, 2000)
    await allOwned()
    first.cut()
    const began = performance.now()
    await waitFor(() => !first.ownership.isHeld(3), { what: 'the short Lease to end', deadlineMs })
    expect(performance.now() - began).to.be.lessThan(times.leaseMs + 1000)
    await waitFor(() => second.ownership.size === bucketCount, { what: 'a takeover', deadlineMs })
  })

  it('never own a bucket twice while replicas join, leave and lose their connection', async () => {
    const twice: string[] = []
    const looking = setInterval(() => {
      for (let bucket = 0; bucket < bucketCount; bucket++) {
        const owners = [...open].filter(({ ownership }) => ownership.isHeld(bucket))
        if (owners.length > 1) twice.push(`${bucket}: ${owners.map(({ name }) => name).join()}`)
      }
    }, 2)
    for (let i = 0; i < 3; i++) await start()
    for (let round = 0; round < rounds({ short: 12, long: 100 }); round++) {
      const all = [...open]
      const one = all[Math.floor(Math.random() * all.length)]
      const dice = Math.random()
      if (all.length < 2 || (dice < 0.3 && all.length < 5)) await start()
      else if (dice < 0.5) await one?.end()
      else if (dice < 0.8) one?.cut()
      else for (const replica of all) replica.mend()
      await delay(Math.random() * 1200)
    }
    for (const replica of open) replica.mend()
    await allOwned()
    clearInterval(looking)
    expect(twice.slice(0, 5)).to.deep.equal([])
  })
})

function rejection(aborted: AbortSignal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>()
  aborted.addEventListener('abort', () => reject(aborted.reason as Error), { once: true })
  return promise
}
