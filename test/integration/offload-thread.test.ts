// The thread for large requests while other parts of the server change.
import { expect } from 'chai'
import { startServedApi, type Reply, type ServedApi, type ServedTenant } from './served-api.ts'

const data = Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`k${i}`, '']))

describe('large requests in progress', function () {
  this.timeout(60_000)
  let served: ServedApi

  before(async () => {
    served = await startServedApi()
  })
  after(() => served[Symbol.asyncDispose]())

  const create = (tenant: ServedTenant, name: string): Promise<Reply> =>
    tenant.request('POST', `${tenant.base}/api/v1/namespaces/default/configmaps`, {
      body: { metadata: { name }, data },
    })

  it('end when their logical cluster is deleted, while those of others continue', async () => {
    const acme = await served.tenant('acme')
    const bob = await served.tenant('bob')
    expect((await create(bob, 'before')).status).to.equal(201)
    const requests = Array.from({ length: 20 }, (_, i) => create(acme, `m-${i}`))
    expect((await Promise.race(requests)).status).to.equal(201)
    await served.api.watchCache.deleteCluster(acme.id, { signal: served.signal })
    for (const { status, text } of await Promise.all(requests)) expect([201, 401, 404, 503], text).to.include(status)
    expect((await create(bob, 'after')).status).to.equal(201)
  })
})
