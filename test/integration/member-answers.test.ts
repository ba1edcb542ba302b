// Answers of members, each kind of request against every way to harm whoever asks: too large, without an end, slow,
// elsewhere, no JSON.
import { expect } from 'chai'
import { isStatusError } from '#apimachinery/status/index.ts'
import { responseBoundOf, maxErrorBytes, type ResponseBound } from '#client/verbs/bounded-transport.ts'
import {
  boundedTransport,
  createClient,
  httpTransport,
  type KubeClient,
  type Transport,
  untrustedServer,
} from '#client/index.ts'
import { harms, redirected, startHostileServer, type Harm, type HostileServer } from '#test/support/hostile-answers.ts'
import { isLongRun } from '#test/support/index.ts'

const { signal } = new AbortController()
const pods = { group: '', version: 'v1', resource: 'pods' }
const reviews = { group: 'authentication.k8s.io', version: 'v1', resource: 'tokenreviews' }
const accessReviews = { group: 'authorization.k8s.io', version: 'v1', resource: 'subjectaccessreviews' }
const accounts = { group: '', version: 'v1', resource: 'serviceaccounts' }
const object = (kind: string) => ({ apiVersion: 'v1', kind, metadata: { name: 'a', namespace: 'b' } })
const ref = { namespace: 'b', name: 'a' }

/** What is asked of members, and how. */
const requests: readonly {
  title: string
  kind: ResponseBound['kind']
  ask: (client: KubeClient) => Promise<unknown>
}[] = [
  { title: 'the version', kind: 'small', ask: (client) => client.raw('/version', { signal }) },
  { title: 'its keys', kind: 'small', ask: (client) => client.raw('/openid/v1/jwks', { signal }) },
  {
    title: 'a TokenReview',
    kind: 'small',
    ask: (client) => client.create(reviews, object('TokenReview'), { signal }),
  },
  {
    title: 'a SubjectAccessReview',
    kind: 'small',
    ask: (client) => client.create(accessReviews, object('SubjectAccessReview'), { signal }),
  },
  {
    title: 'a TokenRequest',
    kind: 'small',
    ask: (client) => client.create(accounts, object('TokenRequest'), { subresource: 'token', signal }),
  },
  {
    title: 'the discovery of a group',
    kind: 'discovery',
    ask: (client) => client.raw('/apis/metrics.k8s.io', { signal }),
  },
  {
    title: 'the discovery of a version',
    kind: 'discovery',
    ask: (client) => client.raw('/apis/apps/v1', { signal }),
  },
  { title: 'an object', kind: 'object', ask: (client) => client.get(pods, ref, { signal }) },
  {
    title: 'the status of an object',
    kind: 'object',
    ask: (client) => client.get(pods, ref, { subresource: 'status', signal }),
  },
  { title: 'a creation', kind: 'object', ask: (client) => client.create(pods, object('Pod'), { signal }) },
  { title: 'an update', kind: 'object', ask: (client) => client.update(pods, object('Pod'), { signal }) },
  { title: 'a patch', kind: 'object', ask: (client) => client.patch(pods, ref, 'merge', {}, { signal }) },
  { title: 'a deletion', kind: 'object', ask: (client) => client.delete(pods, ref, { signal }) },
  {
    title: 'an eviction',
    kind: 'object',
    ask: (client) => client.create(pods, object('Eviction'), { subresource: 'eviction', signal }),
  },
  { title: 'a page of a list', kind: 'list', ask: (client) => client.list(pods, { limit: 1, signal }) },
  {
    title: 'metrics',
    kind: 'list',
    ask: (client) => client.raw('/apis/metrics.k8s.io/v1beta1/namespaces/b/pods', { signal }),
  },
  { title: 'the index of OpenAPI', kind: 'schema', ask: (client) => client.raw('/openapi/v3', { signal }) },
  {
    title: 'an OpenAPI document',
    kind: 'schema',
    ask: (client) => client.raw('/openapi/v3/apis/apps/v1?hash=1', { signal }),
  },
]

describe('the answer of a member', function () {
  this.timeout(60_000)
  let server: HostileServer
  let transport: Transport
  let client: KubeClient
  let harm: Harm | undefined

  before(async () => {
    server = await startHostileServer()
    const boundOf: typeof responseBoundOf = (request) => {
      const bound = responseBoundOf(request)
      // The real times are what a distant member may take. Others than a slow one end sooner.
      return harm === 'slow' ? { ...bound, withinMs: 700 } : bound
    }
    transport = boundedTransport(httpTransport({ server: server.url, ca: server.ca }), { boundOf })
    client = createClient(transport, untrustedServer)
  })
  after(async () => {
    await transport[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })
  afterEach(() => (harm = undefined))
  const failure = async (asked: Promise<unknown>): Promise<unknown> =>
    asked.then(
      (value) => value,
      (error: unknown) => error,
    )
  const reasons: Record<Harm, string> = {
    huge: 'RequestEntityTooLarge',
    endless: 'RequestEntityTooLarge',
    slow: 'ServiceUnavailable',
    redirect: 'ServiceUnavailable',
    'wrong type': 'ServiceUnavailable',
    hints: 'ServiceUnavailable',
  }

  const firstOfKind = new Set(
    requests.filter(({ kind }, index) => requests.findIndex((one) => one.kind === kind) === index),
  )
  for (const request of requests)
    // All in `make test-long`. What is slow or endless meets the same bounds as what is huge.
    for (const one of harms.filter(
      (one) => isLongRun || firstOfKind.has(request) || !['slow', 'endless'].includes(one),
    ))
      it(`to ${request.title}: ${one}`, async () => {
        const { kind, ask } = request
        server.answerWith((harm = one))
        const before = server.asked.length
        const error = await failure(ask(client))
        expect(isStatusError(error, reasons[one]), String(error)).to.equal(true)
        expect(server.asked.slice(before)).to.have.lengthOf(1).and.not.include(redirected)
        // What sockets and pipes hold on top of what is read.
        const { maxBytes } = responseBoundOf(pathOf(server.asked.at(-1) ?? '', kind))
        expect(server.sent()).to.be.lessThan(maxBytes + 8 * 1024 * 1024)
      })

  const pathOf = (path: string, kind: ResponseBound['kind']) => ({
    method: kind === 'list' || kind === 'discovery' || kind === 'schema' ? 'GET' : 'POST',
    path,
  })

  for (const harm of ['redirect', 'wrong type', 'hints'] as const)
    it(`to a watch: ${harm}`, async () => {
      server.answerWith(harm)
      const error = await failure(client.watch(pods, { signal })[Symbol.asyncIterator]().next())
      expect(isStatusError(error, 'ServiceUnavailable'), String(error)).to.equal(true)
    })

  it('to a watch: one event without an end', async () => {
    server.answerWith('endless')
    const error = await failure(client.watch(pods, { signal })[Symbol.asyncIterator]().next())
    expect(isStatusError(error, 'RequestEntityTooLarge'), String(error)).to.equal(true)
  })

  it('with logs is passed on while it comes, without a bound', async () => {
    server.answerWith('huge')
    const response = await transport.request({ method: 'GET', path: '/api/v1/namespaces/b/pods/a/log', signal })
    let bytes = 0
    for await (const chunk of response.body) bytes += chunk.length
    expect(bytes).to.be.greaterThan(64 * 1024 * 1024)
  })

  it('is no larger than a Status may be if it is a failure', async () => {
    server.answerWith((_, response) => void response.writeHead(500).end('x'.repeat(maxErrorBytes + 1)))
    const error = await failure(client.list(pods, { limit: 1, signal }))
    expect(isStatusError(error, 'RequestEntityTooLarge'), String(error)).to.equal(true)
  })

  it('ends its connection if nobody reads it', async () => {
    const closed = Promise.withResolvers<undefined>()
    server.answerWith((request, response) => {
      request.socket.once('close', () => closed.resolve(undefined))
      response.writeHead(200, { 'content-type': 'application/json' })
      response.write('{')
    })
    const { body } = await transport.request({ method: 'GET', path: '/version', signal })
    await body[Symbol.asyncIterator]().return?.()
    await closed.promise
  })

  it('with a list of large objects comes in smaller pages', async () => {
    const limits: number[] = []
    server.answerWith((request, response) => {
      const { searchParams } = new URL(request.url ?? '', 'https://a')
      const [limit, from] = [Number(searchParams.get('limit')), Number(searchParams.get('continue') ?? 0)]
      limits.push(limit)
      const count = Math.min(limit, 100 - from)
      const items = Array.from({ length: count }, (_, i) => ({
        metadata: { name: `p${from + i}` },
        x: 'x'.repeat(1_000_000),
      }))
      const next = from + count < 100 ? { continue: String(from + count) } : {}
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ kind: 'PodList', apiVersion: 'v1', metadata: next, items }))
    })
    const { items } = await client.list(pods, { signal })
    expect(items.map(({ metadata }) => metadata.name)).to.deep.equal(Array.from({ length: 100 }, (_, i) => `p${i}`))
    expect(limits.slice(0, 4)).to.deep.equal([500, 62, 7, 7])
  })

  it('with a list whose pages never end is given up', async () => {
    server.answerWith((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      const items = [{ metadata: { name: 'a' }, x: 'x'.repeat(1_000_000) }]
      response.end(JSON.stringify({ kind: 'PodList', apiVersion: 'v1', metadata: { continue: 'again' }, items }))
    })
    const small = createClient(transport, { ...untrustedServer, maxListBytes: 20_000_000 })
    const error = await failure(small.list(pods, { signal }))
    expect(isStatusError(error, 'RequestEntityTooLarge'), String(error)).to.equal(true)
  })
})
