// The memory that the answers of hundreds of webhooks take at a time.
import { Readable } from 'node:stream'
import { expect } from 'chai'
import { startServedApi, type Reply, type ServedApi } from '#test/integration/served-api.ts'
import { startHostileServer, type HostileServer } from '#test/support/hostile-answers.ts'
import { ownAddress } from '#test/support/sample-api-server.ts'

const maps = '/api/v1/namespaces/default/configmaps'
const mib = 1024 * 1024
const many = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i))

describe('the answers of servers of tenants', function () {
  this.timeout(180_000)
  const address = ownAddress()
  let server: HostileServer
  let served: ServedApi

  before(async () => {
    server = await startHostileServer(address)
    served = await startServedApi({ egress: { allow: [`${address}/32`] } })
  })
  after(async () => {
    await served[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  it('of 300 webhooks that send megabytes and hang are held by a few at a time', async () => {
    const [by, quiet] = [await served.tenant('hooked'), await served.tenant('quiet')]
    const type = { apiVersion: 'admissionregistration.k8s.io/v1', kind: 'ValidatingWebhookConfiguration' }
    const caBundle = Buffer.from(server.ca).toString('base64')
    const rules = [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['*'], resources: ['configmaps'] }]
    const webhooks = many(300, (i) => ({
      ...{ name: `h${i}.shop.example.com`, clientConfig: { url: `${server.url}/hook/${i}`, caBundle } },
      ...{ sideEffects: 'None', timeoutSeconds: 5, admissionReviewVersions: ['v1'], rules },
    }))
    const path = `${by.base}/apis/${type.apiVersion}/validatingwebhookconfigurations`
    const made = await by.request('POST', path, { body: { ...type, metadata: { name: 'all' }, webhooks } })
    expect(made.status, made.text).to.equal(201)
    let open = 0
    const part = Buffer.alloc(mib / 16, ' ')
    server.answerWith((_, response) => {
      open++
      response.writeHead(200, { 'content-type': 'application/json' })
      // 7 MiB, as far as they are read: this process would hold the rest.
      Readable.from(many(7 * 16, () => part)).pipe(response, { end: false })
    })
    const before = process.memoryUsage.rss()
    let highest = before
    const look = setInterval(() => (highest = Math.max(highest, process.memoryUsage.rss())), 20)
    const create = (): Promise<Reply> =>
      by.request('POST', by.base + maps, { body: { metadata: { generateName: 'a' } } })
    const replies = await Promise.all([create(), create()])
    clearInterval(look)
    expect(replies.map(({ status }) => status)).to.deep.equal([500, 500])
    expect(open).to.be.greaterThan(100)
    // 600 answers of 7 MiB would be 4 GiB; 240 MiB were seen.
    expect((highest - before) / mib).to.be.lessThan(600)
    expect((await quiet.request('GET', quiet.base + maps)).status).to.equal(200)
  })
})
