import { Buffer } from 'node:buffer'
import { expect } from 'chai'
import { clusterIdOf, type ClusterName } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { Exchange, type BytesResponse } from '#virtualapi/request/exchange.ts'
import { OffloadThread, type OffloadThreadOptions } from './offload-thread.ts'

/** A JSON list of so many objects; written as YAML, 100,000 take about a second and 90 MiB of heap. */
function listOf(count: number): BytesResponse {
  const items = Array.from({ length: count }, (_, i) => ({ a: `v${i}` }))
  const body = Buffer.from(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
  return { kind: 'bytes', status: 200, headers: { 'content-type': 'application/json' }, body }
}

/** A request of a logical cluster. */
function requestOf(name: string, signal: AbortSignal): Exchange {
  const request = { method: 'GET', url: '/', rawHeaders: [], peerCertificate: undefined, signal }
  const exchange = new Exchange({ ...request, body: () => Promise.resolve(new Uint8Array()) })
  const facts = { uid: name, creationTimestamp: '2026-01-01T00:00:00Z', owners: [], deleting: false }
  exchange.cluster = { id: clusterIdOf(name), name: name as ClusterName, ...facts }
  return exchange
}

describe('OffloadThread', function () {
  this.timeout(120_000)
  let offload: OffloadThread
  let settled: string[]

  const start = (options: Partial<OffloadThreadOptions>): void => {
    const outbound = { post: () => Promise.reject(new Error('no request here calls anybody')) }
    offload = new OffloadThread({ hasRoot: false, outbound, mayRunPods: () => true, ...options })
    settled = []
  }
  /** Writes a list as YAML; the result is the status of the answer. */
  const write = async (
    name: string,
    { count = 10, signal = new AbortController().signal }: { count?: number; signal?: AbortSignal } = {},
  ): Promise<number> => {
    const exchange = requestOf(name, signal)
    const status = await offload.reformat(listOf(count), { format: 'yaml', pretty: false }, { exchange }).then(
      (response) => response.status,
      (error: unknown) => (isStatusError(error) ? error.code : -1),
    )
    settled.push(`${name} ${count}`)
    return status
  }

  afterEach(() => offload[Symbol.asyncDispose]())

  it('ends a request that computes for too long with 504, and answers those that waited for it', async () => {
    start({ maxComputeMs: 1500 })
    const long = write('acme', { count: 700_000 })
    const others = ['acme', 'acme', 'bob'].map((name) => write(name))
    expect(await Promise.all(others)).to.deep.equal([200, 200, 200])
    expect(await long).to.equal(504)
    expect(await write('acme')).to.equal(200)
  })

  it('answers another logical cluster while a long request runs', async () => {
    start({ maxComputeMs: 60_000 })
    await write('acme')
    const long = write('acme', { count: 400_000 })
    expect(await write('bob')).to.equal(200)
    expect(await long).to.equal(200)
    expect(settled).to.deep.equal(['acme 10', 'bob 10', 'acme 400000'])
  })

  it('gives up a request whose client is gone', async () => {
    start({ maxComputeMs: 10_000 })
    await write('acme')
    const gone = new AbortController()
    const long = write('acme', { count: 200_000, signal: gone.signal })
    const next = write('acme')
    gone.abort(new Error('the client went away'))
    expect(await long).to.equal(-1)
    expect(await next).to.equal(200)
  })

  it('refuses a request that needs too much memory with 413, and goes on', async () => {
    // A quarter of this memory is less than 500,000 objects take. To fill the largest heap takes 20 s.
    start({ maxComputeMs: 110_000, memoryBytes: 512 * 1024 * 1024 })
    const large = write('acme', { count: 500_000 })
    const others = ['acme', 'bob'].map((name) => write(name))
    expect(await large).to.equal(413)
    expect(await Promise.all(others)).to.deep.equal([200, 200])
  })

  it('has a smaller heap in a small container', async () => {
    // A quarter of it is less than 400,000 objects take; 10,000 fit.
    start({ maxComputeMs: 110_000, memoryBytes: 256 * 1024 * 1024 })
    expect(await write('acme', { count: 400_000 })).to.equal(413)
    expect(await write('acme', { count: 10_000 })).to.equal(200)
  })
})
