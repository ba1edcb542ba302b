// The offload thread with the heap that it has without a container: what is larger is refused. To fill it takes 20 s;
// src/virtualapi/server/offload/offload-thread.test.ts has the same in a small container.
import { expect } from 'chai'
import { clusterIdOf, type ClusterName } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { Exchange } from '#virtualapi/request/exchange.ts'
import { OffloadThread } from '#virtualapi/server/offload/offload-thread.ts'

/** The status of a JSON list of so many objects that is written as YAML. */
async function write(offload: OffloadThread, name: string, count: number): Promise<number> {
  const items = Array.from({ length: count }, (_, i) => ({ a: `v${i}` }))
  const body = Buffer.from(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
  const { signal } = new AbortController()
  const request = { method: 'GET', url: '/', rawHeaders: [], peerCertificate: undefined, signal }
  const exchange = new Exchange({ ...request, body: () => Promise.resolve(new Uint8Array()) })
  const facts = { uid: name, creationTimestamp: '2026-01-01T00:00:00Z', owners: [], deleting: false }
  exchange.cluster = { id: clusterIdOf(name), name: name as ClusterName, ...facts }
  const list = { kind: 'bytes', status: 200, headers: { 'content-type': 'application/json' }, body } as const
  return await offload.reformat(list, { format: 'yaml', pretty: false }, { exchange }).then(
    ({ status }) => status,
    (error: unknown) => (isStatusError(error) ? error.code : -1),
  )
}

describe('the offload thread without a bound of a container', function () {
  this.timeout(300_000)

  it('refuses a request that needs too much memory with 413, and goes on', async () => {
    const outbound = { post: () => Promise.reject(new Error('no request here calls anybody')) }
    const options = { hasRoot: false, outbound, mayRunPods: () => true, maxComputeMs: 110_000 }
    await using offload = new OffloadThread(options)
    const large = write(offload, 'acme', 3_000_000)
    const others = ['acme', 'bob'].map((name) => write(offload, name, 10))
    expect(await large).to.equal(413)
    expect(await Promise.all(others)).to.deep.equal([200, 200])
  })
})
