// Conversion webhooks in the parts that a comparison with a real server does not reach: batches, watches, what hangs,
// large objects, addresses that are denied.
import { createInterface } from 'node:readline'
import { expect } from 'chai'
import type { JsonObject, KubeObject } from '#apimachinery/meta/index.ts'
import { startWebhookServer, type WebhookServer } from '#test/support/webhook-server.ts'
import { startServedApi, type Reply, type ServedApi, type ServedTenant } from './served-api.ts'

const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
const schema = { openAPIV3Schema: { type: 'object', properties: { spec: open } } }
const at = (version: string, name = ''): string =>
  `/apis/shop.example.com/${version}/namespaces/default/shops${name === '' ? '' : `/${name}`}`

describe('conversion webhooks of a logical cluster', () => {
  let hooks: WebhookServer
  let served: ServedApi
  let count = 0

  before(async () => {
    hooks = await startWebhookServer()
    served = await startServedApi({ egress: { allow: ['127.0.0.0/8'] } })
  })
  after(async () => {
    await served[Symbol.asyncDispose]()
    await hooks[Symbol.asyncDispose]()
  })

  /** A tenant with a kind that is stored in v1 and converted at this path. */
  async function tenant(path: string, clientConfig: JsonObject = hooks.at(path)): Promise<ServedTenant> {
    const by = await served.tenant(`conversions-${count++}`)
    const webhook = { clientConfig, conversionReviewVersions: ['v1'] }
    const body = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'shops.shop.example.com' },
      spec: {
        ...{ group: 'shop.example.com', scope: 'Namespaced', names: { plural: 'shops', kind: 'Shop' } },
        versions: [
          { name: 'v1', served: true, storage: true, schema },
          { name: 'v2', served: true, storage: false, schema },
        ],
        conversion: { strategy: 'Webhook', webhook },
      },
    }
    const crds = `${by.base}/apis/apiextensions.k8s.io/v1/customresourcedefinitions`
    expect((await by.request('POST', crds, { body })).status).to.equal(201)
    return by
  }
  const shop = (name: string, more: JsonObject = {}): JsonObject => ({
    ...{ apiVersion: 'shop.example.com/v1', kind: 'Shop', metadata: { name } },
    spec: { hostPort: `${name}:80`, ...more },
  })
  const create = (by: ServedTenant, name: string, more: JsonObject = {}): Promise<Reply> =>
    by.request('POST', by.base + at('v1'), { body: shop(name, more) })
  const get = (by: ServedTenant, path: string): Promise<Reply> => by.request('GET', by.base + path)

  it('are asked for the objects of a list together, and not again while these stay as they are', async () => {
    const one = await tenant('/convert')
    const names = Array.from({ length: 600 }, (_, i) => `shop-${String(i).padStart(3, '0')}`)
    for (const name of names) expect((await create(one, name)).status).to.equal(201)
    const before = hooks.asked.length
    const { items } = JSON.parse((await get(one, at('v2'))).text) as { items: (KubeObject & { spec: JsonObject })[] }
    expect(items.map(({ spec }) => spec['host'])).to.deep.equal(names)
    expect(new Set(items.map(({ apiVersion }) => apiVersion))).to.deep.equal(new Set(['shop.example.com/v2']))
    expect(hooks.asked.length - before).to.equal(2)
    expect((await get(one, at('v2'))).status).to.equal(200)
    expect((await get(one, at('v1'))).status).to.equal(200)
    expect(hooks.asked.length - before).to.equal(2)
  })
  it('convert the events of watches, once for all of them', async () => {
    const one = await tenant('/convert')
    await create(one, 'a')
    const query = '?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
    const watches = await Promise.all([1, 2, 3].map(() => events(one, at('v2') + query)))
    for (const next of watches) {
      expect(await next()).to.include({ type: 'ADDED', host: 'a' })
      expect(await next()).to.include({ type: 'BOOKMARK' })
    }
    const before = hooks.asked.length
    await create(one, 'b')
    for (const next of watches) expect(await next()).to.include({ type: 'ADDED', host: 'b' })
    expect(hooks.asked.length - before).to.equal(1)
    await one.request('DELETE', one.base + at('v1', 'b'))
    for (const next of watches) expect(await next()).to.include({ type: 'DELETED', host: 'b', port: '80' })
  })
  it('end a watch with an error where an event cannot be converted', async () => {
    const one = await tenant('/convert/refuse/because')
    const next = await events(one, `${at('v2')}?watch=1`)
    await create(one, 'a')
    const { type, object } = await next()
    expect(type).to.equal('ERROR')
    expect(object).to.deep.include({
      ...{ code: 500, reason: 'InternalError' },
      message: 'conversion webhook for shop.example.com/v1, Kind=Shop failed: because',
    })
  })
  it('cannot fill the memory with the objects of a list', async () => {
    const one = await tenant('/convert/inflate')
    // Each is a batch of its own: the answer to a single call is bounded by egress.
    const more = { padding: 'x'.repeat(530_000) }
    for (let i = 0; i < 70; i++) expect((await create(one, `shop-${i}`, more)).status).to.equal(201)
    const { status, text } = await get(one, at('v2'))
    expect(status).to.equal(413)
    expect(text).to.contain('larger than 64 MiB, list fewer of them at a time (limit)')
    expect((await get(one, `${at('v2')}?limit=2`)).status).to.equal(200)
    expect((await get(one, `${at('v2')}?labelSelector=!none`)).status).to.equal(413)
  })
  it('that hang cost only the requests that need them', async () => {
    const [one, other] = [await tenant('/hang'), await tenant('/convert')]
    await create(one, 'a')
    await create(other, 'a')
    let ended = 0
    const gone = new AbortController()
    const stuck = Array.from({ length: 50 }, () =>
      one.open('GET', one.base + at('v2'), { signal: gone.signal }).then(
        () => ended++,
        () => undefined,
      ),
    )
    for (let i = 0; i < 5; i++) {
      expect((await get(one, at('v1', 'a'))).status).to.equal(200)
      expect((await create(one, `free-${i}`)).status).to.equal(201)
      expect((await get(other, at('v2', 'a'))).status).to.equal(200)
    }
    expect(ended).to.equal(0)
    gone.abort()
    await Promise.all(stuck)
  })
  it('are shown large objects, which the offload thread answers', async () => {
    const one = await tenant('/convert')
    const parts = Object.fromEntries(Array.from({ length: 30_000 }, (_, i) => [`key-${i}`, 'some value']))
    const body = { ...shop('large', { parts }), apiVersion: 'shop.example.com/v2' }
    expect((await one.request('POST', one.base + at('v2'), { body })).status).to.equal(201)
    const { status, text } = await get(one, at('v2', 'large'))
    expect(status).to.equal(200)
    expect(Object.keys((JSON.parse(text) as { spec: { parts: object } }).spec.parts)).to.have.length(30_000)
  })
  it('are denied private addresses', async () => {
    const one = await tenant('', { url: 'https://169.254.169.254/latest' })
    await create(one, 'a')
    const { status, text } = await get(one, at('v2', 'a'))
    expect(status).to.equal(500)
    expect((JSON.parse(text) as { message: string }).message).to.equal(
      'conversion webhook for shop.example.com/v1, Kind=Shop failed: Post "https://169.254.169.254/latest?timeout=30s": ' +
        'dialing 169.254.169.254 is not permitted: it is a metadata address',
    )
  })
  it('do not repeat what a server answered that is no webhook', async () => {
    const one = await tenant(`/text/${Buffer.from('{"secret":"s3cr3t"}').toString('base64url')}`)
    await create(one, 'a')
    const { status, text } = await get(one, at('v2', 'a'))
    expect(status).to.equal(500)
    expect(text).to.contain('conversion webhook for').and.not.contain('s3cr3t')
  })

  interface Seen {
    readonly type: string
    readonly object: JsonObject
    readonly host?: unknown
    readonly port?: unknown
  }

  /** Opens a watch; each call resolves with its next event. */
  async function events(by: ServedTenant, path: string): Promise<() => Promise<Seen>> {
    const response = await by.open('GET', by.base + path)
    expect(response.statusCode).to.equal(200)
    const lines = createInterface({ input: response })[Symbol.asyncIterator]()
    return async () => {
      const { value } = (await lines.next()) as { value: string }
      const { type, object } = JSON.parse(value) as { type: string; object: JsonObject & { spec?: JsonObject } }
      return { type, object, ...object.spec }
    }
  }
})
