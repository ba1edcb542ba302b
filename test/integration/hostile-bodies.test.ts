import { connect } from 'node:tls'
import { expect } from 'chai'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'
import type { RawRequestOptions } from './raw-client.ts'

const collection = '/clusters/acme/api/v1/namespaces/default/configmaps'
const nested = (depth: number): string =>
  `{"metadata":{"name":"x"},"data":${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}}`
const yamlBomb = [
  'a: &a [x,x,x,x,x,x,x,x,x]',
  ...'bcdefghi'
    .split('')
    .map((name, index) => `${name}: &${name} [${Array(9).fill(`*${'abcdefghi'[index]!}`).join(',')}]`),
].join('\n')
const yaml = ['Content-Type', 'application/yaml']
const protobuf = ['Content-Type', 'application/vnd.kubernetes.protobuf']

interface Case {
  title: string
  method?: string
  path?: string
  options?: RawRequestOptions
  codes: readonly number[]
}

const cases: readonly Case[] = [
  { title: 'truncated JSON', options: { body: '{"metadata":{"name":"x"' }, codes: [400] },
  { title: 'no body', codes: [400] },
  { title: 'nothing but spaces', options: { body: '   ' }, codes: [400] },
  {
    title: 'two JSON documents',
    options: { body: '{"metadata":{"name":"x"}}{"metadata":{"name":"y"}}' },
    codes: [400],
  },
  { title: 'a number', options: { body: '7' }, codes: [400] },
  { title: 'null, which Go reads as an empty object', options: { body: 'null' }, codes: [422] },
  { title: 'a list', options: { body: '[]' }, codes: [400] },
  { title: 'metadata that is a string', options: { body: '{"metadata":"x"}' }, codes: [400] },
  { title: 'a name that is a number', options: { body: '{"metadata":{"name":5}}' }, codes: [400] },
  { title: 'data that is a list', options: { body: '{"metadata":{"name":"x"},"data":[1]}' }, codes: [400] },
  {
    title: 'labels that are not strings',
    options: { body: '{"metadata":{"name":"x","labels":{"a":1}}}' },
    codes: [400],
  },
  { title: 'a finalizers map', options: { body: '{"metadata":{"name":"x","finalizers":{"a":1}}}' }, codes: [400] },
  {
    title: 'ownerReferences of nonsense',
    options: { body: '{"metadata":{"name":"x","ownerReferences":[null,{"uid":7}]}}' },
    codes: [400, 422],
  },
  {
    title: 'an object of another kind',
    options: { body: '{"kind":"Secret","apiVersion":"v1","metadata":{"name":"x"}}' },
    codes: [400],
  },
  {
    title: '__proto__ as a field name',
    options: { body: '{"__proto__":{"polluted":true},"metadata":{"name":"../x"}}' },
    codes: [400, 422],
  },
  {
    title: 'invalid UTF-8',
    options: { body: Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]) },
    codes: [400, 422],
  },
  {
    title: '4 MiB',
    options: { body: JSON.stringify({ metadata: { name: 'x' }, data: { a: 'x'.repeat(4 << 20) } }) },
    codes: [413],
  },
  { title: 'nesting of 500', options: { body: nested(500) }, codes: [400] },
  { title: 'nesting of 100,000', options: { body: nested(100_000) }, codes: [400] },
  { title: 'a list of brackets', options: { body: '['.repeat(1_000_000) }, codes: [400] },
  {
    title: 'a duplicate field, strictly validated',
    path: `${collection}?fieldValidation=Strict`,
    options: { body: '{"metadata":{"name":"x"},"metadata":{"name":"y"}}' },
    codes: [400],
  },
  {
    title: 'a number out of range',
    options: { body: '{"metadata":{"name":"x","generation":1e999}}' },
    codes: [400, 422],
  },
  { title: 'YAML with exponential aliases', options: { body: yamlBomb, headers: yaml }, codes: [400, 413] },
  {
    title: 'YAML with an alias to itself',
    options: { body: 'metadata: &a\n  name: x\n  labels: *a\n', headers: yaml },
    codes: [400],
  },
  {
    title: 'YAML with a language tag',
    options: { body: 'metadata: !!js/function "function(){}"\n', headers: yaml },
    codes: [400, 422],
  },
  {
    title: 'protobuf garbage',
    options: { body: Buffer.from('k8s\0' + '\xff'.repeat(64), 'latin1'), headers: protobuf },
    codes: [400],
  },
  {
    title: 'protobuf with a huge length',
    options: { body: Buffer.from('k8s\0\x0a\xff\xff\xff\xff\x0f', 'latin1'), headers: protobuf },
    codes: [400],
  },
  { title: 'protobuf that is JSON', options: { body: '{}', headers: protobuf }, codes: [400] },
  {
    title: 'CBOR',
    options: { body: Buffer.from([0xa0]), headers: ['Content-Type', 'application/cbor'] },
    codes: [415],
  },
  {
    title: 'a form body',
    options: { body: 'a=b', headers: ['Content-Type', 'application/x-www-form-urlencoded'] },
    codes: [415],
  },
  {
    title: 'a JSON patch that is an object',
    method: 'PATCH',
    path: `${collection}/kept`,
    options: { body: '{}', headers: ['Content-Type', 'application/json-patch+json'] },
    codes: [400],
  },
  {
    title: 'a JSON patch of __proto__',
    method: 'PATCH',
    path: `${collection}/kept`,
    options: {
      body: '[{"op":"add","path":"/__proto__/polluted","value":1}]',
      headers: ['Content-Type', 'application/json-patch+json'],
    },
    codes: [400, 422, 200],
  },
  {
    title: 'a JSON patch of 20,000 steps',
    method: 'PATCH',
    path: `${collection}/kept`,
    options: {
      body: JSON.stringify(Array(20_000).fill({ op: 'add', path: '/data/x', value: 'y' })),
      headers: ['Content-Type', 'application/json-patch+json'],
    },
    codes: [413],
  },
  {
    title: 'a patch without content type',
    method: 'PATCH',
    path: `${collection}/kept`,
    options: { body: '{}' },
    codes: [415],
  },
  {
    title: 'an invalid strategic patch',
    method: 'PATCH',
    path: `${collection}/kept`,
    options: {
      body: '{"metadata":{"$setElementOrder/finalizers":7,"finalizers":{"$patch":"x"}}}',
      headers: ['Content-Type', 'application/strategic-merge-patch+json'],
    },
    codes: [400, 422],
  },
  ...[
    { body: '{"preconditions":7}', codes: [400] },
    { body: '{"preconditions":{"uid":7}}', codes: [400] },
    { body: '{"dryRun":"All"}', codes: [400] },
    { body: '{"dryRun":["None"]}', codes: [422] },
    { body: '{"propagationPolicy":"Sideways"}', codes: [422] },
    { body: '{"gracePeriodSeconds":"soon"}', codes: [400] },
    { body: '{"kind":"Pod"}', codes: [400] },
    { body: '[]', codes: [400] },
    { body: '{"preconditions":{"uid":"another"}}', codes: [409] },
    { body: '{"preconditions":{"resourceVersion":"1"}}', codes: [409] },
  ].map(({ body, codes }) => ({
    title: `DELETE with ${body}`,
    method: 'DELETE',
    path: `${collection}/kept`,
    options: { body },
    codes,
  })),
  { title: 'DELETE with dryRun=None', method: 'DELETE', path: `${collection}/kept?dryRun=None`, codes: [400, 422] },
  {
    title: 'DELETE with an invalid policy',
    method: 'DELETE',
    path: `${collection}/kept?propagationPolicy=Sideways`,
    codes: [400, 422],
  },
  {
    title: 'an Accept with unknown types',
    method: 'GET',
    path: collection,
    options: { headers: ['Accept', 'image/png'] },
    codes: [406],
  },
  { title: 'a negative limit', method: 'GET', path: `${collection}?limit=-7`, codes: [200, 400] },
  {
    title: 'a path of 60,000 bytes',
    method: 'GET',
    path: `${collection}/${'x'.repeat(60_000)}`,
    codes: [400, 404, 414, 431],
  },
  {
    title: 'a query of 60,000 bytes',
    method: 'GET',
    path: `${collection}?labelSelector=${'x'.repeat(60_000)}`,
    codes: [400, 414, 431],
  },
  {
    title: 'a selector of 5,000 terms',
    method: 'GET',
    path: `${collection}?labelSelector=${Array.from({ length: 5000 }, (_, i) => `a${i}`).join(',')}`,
    codes: [200, 400],
  },
  { title: 'invalid percent-escapes', method: 'GET', path: `${collection}/%zz`, codes: [400] },
  { title: 'NUL in a name', method: 'GET', path: `${collection}/a%00b`, codes: [400, 404] },
  { title: 'an unknown method', method: 'BREW', path: collection, codes: [400, 405, 501] },
  { title: 'TRACE', method: 'TRACE', path: collection, codes: [400, 403, 405] },
]

describe('requests that no correct client sends', () => {
  let kcp: KcpInstance
  let acme: Tenant
  let bob: Tenant
  before(async () => {
    kcp = await startInstance()
    acme = await kcp.tenant('acme')
    bob = await kcp.tenant('bob')
    await acme.kubectl(['create', 'configmap', 'kept', '--from-literal=a=b'])
  })
  after(() => kcp[Symbol.asyncDispose]())
  afterEach(async () => {
    expect(kcp.process.running, kcp.process.log()).to.equal(true)
    const others = await bob.http.request('GET', '/clusters/bob/api/v1/namespaces/default')
    expect(others.status).to.equal(200)
    const kept = await acme.http.request('GET', `${collection}/kept`)
    expect(kept.status).to.equal(200)
    expect(kept.json()).to.have.property('data').that.deep.includes({ a: 'b' })
  })

  for (const { title, method = 'POST', path = collection, options = {}, codes } of cases)
    it(`${title}: ${codes.join(' or ')}`, async () => {
      const began = performance.now()
      const response = await acme.http.request(method, path, options)
      expect(response.status, response.text.slice(0, 500)).to.be.oneOf([...codes])
      expect(performance.now() - began, 'milliseconds').to.be.below(5000)
      if (response.status >= 400 && response.headers['content-type'] !== undefined)
        expect(response.json()).to.deep.include({
          kind: 'Status',
          apiVersion: 'v1',
          status: 'Failure',
          code: response.status,
        })
      expect(response.text).not.to.match(/node_modules|\.ts:\d|\.js:\d/)
    })

  it('a small pod that a LimitRange makes large is refused, or made where nobody waits for it', async () => {
    const create = (path: string, body: object) => acme.http.request('POST', `${acme.base}${path}`, { body })
    const namespaced = (path: string) => `/api/v1/namespaces/limited/${path}`
    const pod = (name: string) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name },
      spec: { containers: Array.from({ length: 10 }, (_, i) => ({ name: `c${i}`, image: 'a' })) },
    })
    const limitRange = (name: string, count: number) => {
      const defaults = Object.fromEntries(Array.from({ length: count }, (_, i) => [`example.com/r${i}`, '1']))
      const limits = [{ type: 'Container', default: defaults, defaultRequest: defaults }]
      return { apiVersion: 'v1', kind: 'LimitRange', metadata: { name }, spec: { limits } }
    }
    await create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'limited' } })
    await create(namespaced('limitranges'), limitRange('some', 300))
    expect((await create(namespaced('pods'), pod('larger'))).status).to.equal(201)
    await create(namespaced('limitranges'), limitRange('many', 8000))
    const { status, text } = await create(namespaced('pods'), pod('too-large'))
    expect([status, text]).to.satisfy(([code, body]: [number, string]) => code === 413 && body.includes('LimitRanges'))
  })

  it('bytes that are not HTTP, and a request that never ends, do not affect others', async () => {
    const sockets = [
      '\0\0\0garbage\r\n\r\n',
      'GET / HTTP/9.9\r\n\r\n',
      'POST /clusters/acme/api HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{',
    ].map((text) => {
      const socket = connect({ port: kcp.port, host: '127.0.0.1', rejectUnauthorized: false }, () =>
        socket.write(text, 'latin1'),
      )
      socket.on('error', () => undefined)
      socket.resume()
      return socket
    })
    await acme.kubectl(['get', 'configmap', 'kept'])
    for (const socket of sockets) socket.destroy()
  })

  it('500 at once are answered, and so is the next request', async () => {
    const responses = await Promise.all(
      Array.from({ length: 500 }, (_, index) =>
        acme.http.request(
          'POST',
          collection,
          index % 2 === 0 ? { body: nested(2000) } : { body: '{"metadata":{"name":"X Y"}}' },
        ),
      ),
    )
    for (const { status } of responses) expect(status).to.be.oneOf([400, 422, 429])
  })
})
