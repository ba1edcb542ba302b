// Requests without credentials: what they learn, and whose budget they spend.
import { expect } from 'chai'
import { openRawClient, type RawClient } from './raw-client.ts'
import { startServedApi, type ServedApi, type ServedTenant } from './served-api.ts'

describe('requests without credentials', function () {
  this.timeout(60_000)
  let served: ServedApi
  let acme: ServedTenant
  let nobody: RawClient

  before(async () => {
    served = await startServedApi({ limits: { requests: 2, watches: 1, anonymousRequests: 3 } })
    acme = await served.tenant('acme')
    nobody = openRawClient({ port: served.port })
  })
  after(async () => {
    await nobody[Symbol.asyncDispose]()
    await served[Symbol.asyncDispose]()
  })

  const places = ['/clusters/NAME', '/apis/virtual.kcp.dev/v1alpha1/logicalclusters/NAME/proxy']
  const paths = ['/api', '/api/v1/secrets', '/apis/apps/v1/namespaces/default/deployments/x', '/openapi/v2', '/healthz']
  const identities: string[][] = [
    [],
    ['Impersonate-User', 'admin'],
    ['Impersonate-User', 'system:serviceaccount:default:default', 'Impersonate-Group', 'system:masters'],
    ['Impersonate-Group', 'system:masters'],
    ['Authorization', 'Bearer abc'],
  ]
  for (const place of places)
    for (const headers of identities)
      it(`are answered the same at ${place} with ${headers.join(' ') || 'no headers'} whether or not it exists`, async () => {
        for (const path of paths)
          for (const method of ['GET', 'POST']) {
            const [existing, missing] = await Promise.all(
              ['acme', 'acm2'].map(async (name) => {
                const { status, text } = await nobody.request(method, place.replace('NAME', name) + path, { headers })
                return { status, text: text.replaceAll(name, 'NAME') }
              }),
            )
            expect(existing, `${method} ${path}`).to.deep.equal(missing)
          }
      })

  it('are refused when they impersonate through the path of the aggregator, as are those with credentials', async () => {
    const path = '/apis/virtual.kcp.dev/v1alpha1/logicalclusters/acme/proxy/api/v1/namespaces'
    expect((await acme.request('GET', path)).status).to.equal(200)
    const headers = { 'Impersonate-User': 'eve' }
    const refused = await acme.request('GET', path, { headers })
    expect(refused.status, refused.text).to.equal(400)
    expect(refused.text).to.include('impersonation is not supported on this path')
    expect((await acme.request('GET', `${acme.base}/api/v1/namespaces`, { headers })).status).to.equal(403)
  })

  it('do not spend the budget of the logical cluster', async () => {
    const path = `${acme.base}/api/v1/namespaces`
    const flood = Array.from({ length: 60 }, () => nobody.request('GET', path))
    for (let i = 0; i < 20; i++) expect((await acme.request('GET', path)).status).to.equal(200)
    const statuses = (await Promise.all(flood)).map(({ status }) => status)
    expect(statuses.filter((status) => status !== 403 && status !== 429)).to.deep.equal([])
  })
})
