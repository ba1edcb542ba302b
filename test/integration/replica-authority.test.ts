// The authority of replicas in a Secret of a real host: made once, and replaced while replicas run.
import { expect } from 'chai'
import { X509Certificate } from 'node:crypto'
import { createClient, httpTransport, loadKubeconfig, type KubeClient, type Transport } from '#client/index.ts'
import { replicaAuthority, type ReplicaAuthority } from '#cli/roles/replica-authority.ts'
import { startCluster, type Cluster } from '#test/support/index.ts'

const { signal } = new AbortController()
const hourMs = 60 * 60_000
const day = 24 * hourMs

describe('the authority of replicas', function () {
  this.timeout(120_000)
  let host: Cluster
  let transport: Transport
  let client: KubeClient
  let now = Date.now()
  const read = (): Promise<ReplicaAuthority> =>
    replicaAuthority(client, { namespace: 'default', signal, clock: { now: () => now, monotonic: () => now } })

  before(async () => {
    host = await startCluster({ name: 'host' })
    transport = httpTransport(await loadKubeconfig({ file: host.kubeconfig }, { trusted: true }))
    client = createClient(transport)
  })
  after(async () => {
    await transport[Symbol.asyncDispose]()
    await host.stop()
  })

  it('is one for replicas that start at once', async () => {
    const all = await Promise.all([read(), read(), read()])
    for (const one of all) expect(one).to.deep.equal(all[0])
    expect(new X509Certificate(all[0].current.certificate).ca).to.equal(true)
  })

  it('is replaced by one that all trust an hour before it signs, and is trusted after that', async () => {
    const first = await read()
    now += 250 * day
    const waiting = await read()
    expect(waiting.current).to.deep.equal(first.current)
    expect(waiting.trusted.startsWith(first.trusted)).to.equal(true)
    expect(waiting.trusted.length).to.be.greaterThan(first.trusted.length)
    now += hourMs / 2
    expect(await read()).to.deep.equal(waiting)
    now += hourMs
    const second = await read()
    expect(second.current.certificate).not.to.equal(first.current.certificate)
    expect(waiting.trusted).to.include(second.current.certificate)
    expect(second.trusted).to.include(first.current.certificate)
    expect(await read()).to.deep.equal(second)
  })
})
