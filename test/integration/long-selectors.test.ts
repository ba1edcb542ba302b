// Watches whose selectors are as long as a request may be: they count for the memory that they take.
import { expect } from 'chai'
import { startServedApi, untilTrue, type ServedApi, type ServedTenant } from './served-api.ts'

const configMaps = '/clusters/acme/api/v1/namespaces/default/configmaps'

describe('watches with long selectors', function () {
  this.timeout(120_000)
  let served: ServedApi
  let acme: ServedTenant
  before(async () => {
    served = await startServedApi({ limits: { watches: 500 } })
    acme = await served.tenant('acme')
    expect((await acme.request('GET', configMaps)).status).to.equal(200)
  })
  after(() => served[Symbol.asyncDispose]())

  /** Opens a watch over HTTP/2; resolves with the status. */
  function watch(session: ReturnType<ServedTenant['http2']>, query: Record<string, string>): Promise<number> {
    return new Promise((resolve) => {
      const stream = session.request({
        ':path': `${configMaps}?${String(new URLSearchParams({ watch: '1', ...query }))}`,
      })
      stream.on('error', () => resolve(0))
      stream.on('response', (headers) => resolve(headers[':status'] ?? 0))
      stream.resume()
    })
  }

  for (const [title, parameter, term] of [
    ['labels', 'labelSelector', (i: number, n: number) => `!k${i}-${n}`],
    ['fields', 'fieldSelector', (i: number, n: number) => `metadata.name!=k${i}-${n}`],
  ] as const)
    it(`are bounded by the memory of their selectors, and equal ones are shared: ${title}`, async () => {
      const before = served.api.watchCache.usage().watchers
      const session = acme.http2()
      const long = (n: number) => ({ [parameter]: Array.from({ length: 2000 }, (_, i) => term(i, n)).join(',') })
      // Equal selectors count once.
      for (let i = 0; i < 60; i++) expect(await watch(session, long(0))).to.equal(200)
      const statuses: number[] = []
      for (let n = 1; n < 40; n++) statuses.push(await watch(session, long(n)))
      expect(statuses.indexOf(429)).to.be.within(8, 30)
      session.destroy()
      await untilTrue(() => served.api.watchCache.usage().watchers === before, 'all watches are closed')
      const again = acme.http2()
      expect(await watch(again, long(99))).to.equal(200)
      again.destroy()
      await untilTrue(() => served.api.watchCache.usage().watchers === before, 'all watches are closed')
    })
})
