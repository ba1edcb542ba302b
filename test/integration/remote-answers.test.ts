// Answers of tenants' servers (webhooks, conversions, aggregated APIs): each kind of call against every way to harm
// whoever asks.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { expect } from 'chai'
import type { JsonObject, KubeObject } from '#apimachinery/meta/index.ts'
import { harms, redirected, startHostileServer, type HostileServer } from '#test/support/hostile-answers.ts'
import { hostService } from '#test/support/host-service.ts'
import { isLongRun } from '#test/support/index.ts'
import { ownAddress } from '#test/support/sample-api-server.ts'
import { startServedApi, type Reply, type ServedApi, type ServedTenant } from './served-api.ts'

const maps = '/api/v1/namespaces/default/configmaps'
const aggregatedV2 = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
const mib = 1024 * 1024
const many = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i))

type Review = { apiVersion: string; kind: string; request: { uid: string; objects?: JsonObject[] } }
type Handle = (request: IncomingMessage, response: ServerResponse, body: Buffer) => void

/** The answer of a webhook: a review with this response. */
function reviewing(respond: (review: Review) => JsonObject, more: JsonObject = {}): Handle {
  return (_, response, body) => {
    const review = JSON.parse(body.toString()) as Review
    const answer = {
      ...more,
      apiVersion: review.apiVersion,
      kind: review.kind,
      response: { uid: review.request.uid, ...respond(review) },
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  }
}

function patching(operations: unknown): Handle {
  const patch = Buffer.from(JSON.stringify(operations)).toString('base64')
  return reviewing(() => ({ allowed: true, patchType: 'JSONPatch', patch }))
}

describe('the answers of servers of tenants', function () {
  this.timeout(180_000)
  const address = ownAddress()
  let server: HostileServer
  let served: ServedApi
  let quiet: ServedTenant
  let count = 0

  before(async () => {
    server = await startHostileServer(address)
    served = await startServedApi({ egress: { allow: [`${address}/32`] } })
    quiet = await served.tenant('quiet')
  })
  after(async () => {
    await served[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  const send = (by: ServedTenant, method: string, path: string, body?: unknown): Promise<Reply> =>
    by.request(method, by.base + path, body === undefined ? {} : { body })
  const create = async (by: ServedTenant, path: string, body: unknown): Promise<void> => {
    const { status, text } = await send(by, 'POST', path, body)
    expect(status, text).to.equal(201)
  }
  const clientConfig = (path = '/hook') => ({
    url: `${server.url}${path}`,
    caBundle: Buffer.from(server.ca).toString('base64'),
  })

  async function withWebhooks(kind: 'Mutating' | 'Validating', webhooks = 1, more: object = {}): Promise<ServedTenant> {
    const by = await served.tenant(`hooked-${count++}`)
    const type = `${kind}WebhookConfiguration`
    await create(by, `/apis/admissionregistration.k8s.io/v1/${type.toLowerCase()}s`, {
      ...{ apiVersion: 'admissionregistration.k8s.io/v1', kind: type, metadata: { name: 'all' } },
      webhooks: many(webhooks, (i) => ({
        ...{
          name: `h${i}.shop.example.com`,
          clientConfig: clientConfig(`/hook/${i}`),
          sideEffects: 'None',
          timeoutSeconds: 2,
        },
        admissionReviewVersions: ['v1'],
        rules: [
          {
            operations: ['CREATE'],
            apiGroups: ['', 'shop.example'],
            apiVersions: ['*'],
            resources: ['configmaps', 'things'],
          },
        ],
        ...more,
      })),
    })
    return by
  }

  const crd = {
    ...{
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'things.shop.example' },
    },
    spec: {
      ...{ group: 'shop.example', scope: 'Namespaced' },
      names: { plural: 'things', singular: 'thing', kind: 'Thing', listKind: 'ThingList' },
      versions: ['v1', 'v2'].map((name) => ({
        ...{ name, served: true, storage: name === 'v1' },
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      })),
    },
  }
  const things = (version: string): string => `/apis/shop.example/${version}/namespaces/default/things`
  async function withConversion(): Promise<ServedTenant> {
    const by = await served.tenant(`converting-${count++}`)
    const webhook = { conversionReviewVersions: ['v1'], clientConfig: clientConfig() }
    const spec = { ...crd.spec, conversion: { strategy: 'Webhook', webhook } }
    await create(by, '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', { ...crd, spec })
    for (const end = performance.now() + 20_000; performance.now() < end;)
      if ((await send(by, 'GET', things('v1'))).status === 200) break
    for (const name of ['a', 'b'])
      await create(by, things('v1'), { apiVersion: 'shop.example/v1', kind: 'Thing', metadata: { name } })
    return by
  }

  async function withApiServices(groups: readonly string[]): Promise<ServedTenant> {
    const by = await served.tenant(`aggregating-${count++}`)
    const { items } = hostService({ name: 'api', namespace: 'default', address, port: server.port }) as {
      items: KubeObject[]
    }
    await create(by, '/api/v1/namespaces/default/services', items[0])
    await create(by, '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices', items[1])
    for (const group of groups)
      await create(by, '/apis/apiregistration.k8s.io/v1/apiservices', {
        ...{ apiVersion: 'apiregistration.k8s.io/v1', kind: 'APIService', metadata: { name: `v1.${group}` } },
        spec: {
          ...{ group, version: 'v1', groupPriorityMinimum: 2000, versionPriority: 15, insecureSkipTLSVerify: true },
          service: { namespace: 'default', name: 'api' },
        },
      })
    return by
  }

  /** What causes a call, and the status of its answer where the call fails. */
  const calls: readonly {
    title: string
    status: number
    tenant: () => Promise<ServedTenant>
    ask: (by: ServedTenant) => Promise<Reply>
  }[] = [
    {
      ...{ title: 'a validating webhook', status: 500 },
      tenant: () => withWebhooks('Validating'),
      ask: (by) => send(by, 'POST', maps, { metadata: { generateName: 'a' } }),
    },
    {
      ...{ title: 'a mutating webhook', status: 500 },
      tenant: () => withWebhooks('Mutating'),
      ask: (by) => send(by, 'POST', maps, { metadata: { generateName: 'a' } }),
    },
    {
      title: 'a conversion of an object',
      status: 500,
      tenant: withConversion,
      ask: (by) => send(by, 'GET', `${things('v2')}/a`),
    },
    {
      title: 'a conversion of a list',
      status: 500,
      tenant: withConversion,
      ask: (by) => send(by, 'GET', things('v2')),
    },
    {
      ...{ title: 'discovery', status: 200 },
      tenant: () => withApiServices(['remote.example']),
      ask: (by) => by.request('GET', `${by.base}/apis`, { headers: { accept: aggregatedV2 } }),
    },
    {
      ...{ title: 'OpenAPI v2', status: 200 },
      tenant: () => withApiServices(['remote.example']),
      ask: (by) => send(by, 'GET', '/openapi/v2'),
    },
    {
      ...{ title: 'the index of OpenAPI v3', status: 200 },
      tenant: () => withApiServices(['remote.example']),
      ask: (by) => send(by, 'GET', '/openapi/v3'),
    },
  ]
  for (const { title, status, tenant, ask } of calls)
    for (const harm of harms)
      // A conversion waits for 30 s, as upstream; the others for five to ten.
      if (harm !== 'slow' || title === 'a mutating webhook' || (isLongRun && !title.includes('conversion')))
        it(`to ${title}: ${harm}`, async () => {
          const by = await tenant()
          server.answerWith(harm)
          const before = server.asked.length
          const reply = await ask(by)
          expect(reply.status, reply.text.slice(0, 300)).to.equal(status)
          expect(server.asked.slice(before)).to.not.include(redirected)
          expect(server.sent()).to.be.lessThan(40 * mib)
          expect((await send(quiet, 'GET', maps)).status).to.equal(200)
        })

  it('of a webhook that repeats the review, with much more than is used, are read', async () => {
    const by = await withWebhooks('Validating')
    const more = { request: { objects: many(50_000, (i) => ({ i })) }, other: 'x'.repeat(2 * mib) }
    server.answerWith(reviewing(() => ({ allowed: true, warnings: many(100_000, (i) => `warning ${i}`) }), more))
    const { status, text, headers } = await send(by, 'POST', maps, { metadata: { generateName: 'a' } })
    expect(status, text).to.equal(201)
    expect(String(headers['warning'])).to.contain('warning 0').and.not.contain('warning 100"')
  })

  describe('of a mutating webhook', () => {
    const annotations = (number: number) => Object.fromEntries(many(number, (i) => [`a${i}`, '']))
    for (const { title, operations, status, message } of [
      {
        title: 'with an object of too many values',
        operations: [{ op: 'add', path: '/data', value: annotations(100_001) }],
        ...{ status: 500, message: 'limit is 100000 values' },
      },
      {
        title: 'that adds too many values step by step',
        operations: many(3, (i) => ({
          op: 'add',
          path: `/${['data', 'binaryData', 'other'][i]}`,
          value: annotations(40_000),
        })),
        ...{ status: 500, message: 'limit is 100000 values' },
      },
      {
        title: 'with an object of too many bytes',
        operations: [{ op: 'add', path: '/data', value: { a: 'x'.repeat(4 * mib) } }],
        ...{ status: 500, message: 'limit is' },
      },
      {
        title: 'with an object of too many levels',
        operations: `[{"op":"add","path":"/data","value":${'['.repeat(5000)}${']'.repeat(5000)}}]`,
        ...{ status: 500, message: 'max depth' },
      },
      {
        title: 'with a large object, as if its client had sent it',
        operations: [{ op: 'add', path: '/data', value: annotations(30_000) }],
        ...{ status: 201, message: '"a29999"' },
      },
    ])
      it(`${title}: ${status}`, async () => {
        const by = await withWebhooks('Mutating')
        const patch = typeof operations === 'string' ? Buffer.from(operations).toString('base64') : undefined
        server.answerWith(
          patch === undefined
            ? patching(operations)
            : reviewing(() => ({ allowed: true, patchType: 'JSONPatch', patch })),
        )
        const reply = await send(by, 'POST', maps, { metadata: { name: 'a' } })
        expect(reply.status, reply.text.slice(0, 300)).to.equal(status)
        expect(reply.text).to.contain(message)
      })
  })

  it('of a conversion with an object of too many values are refused', async () => {
    const by = await withConversion()
    const spec = Object.fromEntries(many(25_001, (i) => [`f${i}`, 1]))
    server.answerWith(
      reviewing(({ request }) => ({
        result: { status: 'Success' },
        convertedObjects: (request.objects ?? []).map((object) => ({ ...object, apiVersion: 'shop.example/v2', spec })),
      })),
    )
    const { status, text } = await send(by, 'GET', `${things('v2')}/a`)
    expect(status).to.equal(500)
    expect(text).to.contain('limit is 25000 values')
  })

  describe('in discovery', () => {
    const json =
      (of: (path: string) => unknown): Handle =>
      (request, response) => {
        const value = of(request.url ?? '')
        response.writeHead(value === undefined ? 404 : 200, { 'content-type': 'application/json' })
        response.end(typeof value === 'string' ? value : JSON.stringify(value ?? {}))
      }
    const discovered = async (by: ServedTenant) => {
      const { status, text } = await by.request('GET', `${by.base}/apis`, { headers: { accept: aggregatedV2 } })
      expect(status).to.equal(200)
      const { items } = JSON.parse(text) as {
        items: {
          metadata: { name: string }
          versions: { freshness: string; resources?: { subresources?: unknown[] }[] }[]
        }[]
      }
      return items.find(({ metadata }) => metadata.name === 'remote.example')?.versions[0]
    }
    const row = (name: string) => ({ name, kind: 'R', namespaced: true, verbs: ['get'] })
    const listOf = (rows: unknown[]) => ({
      kind: 'APIResourceList',
      groupVersion: 'remote.example/v1',
      resources: rows,
    })

    it('have their subresources, and more rows than any server has make the version stale', async () => {
      const by = await withApiServices(['remote.example'])
      server.answerWith(
        json((path) =>
          path === '/apis/remote.example/v1' ? listOf(['a', 'a/status', 'b', 'a/x', 'c/x'].map(row)) : undefined,
        ),
      )
      const version = await discovered(by)
      expect(version?.resources?.map(({ subresources = [] }) => subresources.length)).to.deep.equal([2, 0])
      const other = await withApiServices(['remote.example'])
      server.answerWith(
        json((path) => (path === '/apis/remote.example/v1' ? listOf(many(40_000, (i) => row(`r${i}`))) : undefined)),
      )
      expect(await discovered(other)).to.include({ freshness: 'Stale' })
    })

    it('with references to a large parameter of OpenAPI v2 do not become larger than what one logical cluster may have', async () => {
      const groups = many(6, (i) => `g${i}.example`)
      const by = await withApiServices(groups)
      const own = { name: 'own', in: 'query', type: 'string', description: 'x'.repeat(20_000) }
      const pathsOf = (group: string) =>
        Object.fromEntries(
          many(500, (i) => [
            `/apis/${group}/v1/r${i}`,
            { get: { parameters: many(40, () => ({ $ref: '#/parameters/own' })) } },
          ]),
        )
      const paths = Object.assign({}, ...groups.map(pathsOf)) as JsonObject
      const document = JSON.stringify({ swagger: '2.0', parameters: { own }, paths })
      server.answerWith(json((path) => (path === '/openapi/v2' ? document : undefined)))
      const { status, text } = await send(by, 'GET', '/openapi/v2')
      expect(status).to.equal(200)
      expect(text.length).to.be.lessThan(16 * mib)
    })

    it('are as many as fit if every server has a large document', async () => {
      const groups = many(30, (i) => `g${i}.example`)
      const by = await withApiServices(groups)
      const document = (group: string) =>
        JSON.stringify({
          swagger: '2.0',
          paths: { [`/apis/${group}/v1/r`]: { get: { responses: { 200: { schema: { $ref: '#/definitions/D0' } } } } } },
          definitions: Object.fromEntries(
            many(30, (i) => [
              `D${i}`,
              { description: `${group}${'x'.repeat(100_000)}`, allOf: [{ $ref: `#/definitions/D${i + 1}` }] },
            ]),
          ),
        })
      const documents = groups.map((group) => Buffer.from(document(group)))
      server.answerWith((request, response) => {
        const answer = request.url === '/openapi/v2' ? documents[server.asked.length % 30] : '{}'
        response.writeHead(200, { 'content-type': 'application/json' }).end(answer)
      })
      const { status, text } = await send(by, 'GET', '/openapi/v2')
      expect(status).to.equal(200)
      expect(text.length).to.be.lessThan(16 * mib)
    })
  })

  it('have no headers that count for the origin which all tenants share', async () => {
    const by = await withApiServices(['remote.example'])
    const hostile = {
      'strict-transport-security': 'max-age=1',
      'clear-site-data': '"*"',
      'alt-svc': 'h3=":443"',
      'set-cookie': ['a=b', 'c=d'],
      location: 'https://elsewhere.example/',
      'content-location': '/x',
      refresh: '0; url=https://elsewhere.example/',
      link: '<https://elsewhere.example/>; rel=preload',
      nel: '{}',
      'report-to': '{}',
      'reporting-endpoints': 'a="https://elsewhere.example/"',
      'accept-ch': 'Sec-CH-UA',
      'origin-agent-cluster': '?1',
      'service-worker-allowed': '/',
      'public-key-pins': 'x',
      'permissions-policy': 'x=*',
      'access-control-allow-origin': '*',
      'access-control-allow-credentials': 'true',
      'www-authenticate': 'Basic',
      'x-accel-redirect': '/internal',
      'x-sendfile': '/etc/passwd',
      sourcemap: '/x',
    }
    const kept = {
      'content-type': 'application/json',
      warning: '299 - "old"',
      'x-custom': 'a',
      etag: '"1"',
      'retry-after': '1',
    }
    server.answerWith((_, response) => void response.writeHead(201, { ...hostile, ...kept }).end('{}'))
    const { status, headers } = await send(by, 'POST', '/apis/remote.example/v1/things', {})
    expect(status).to.equal(201)
    expect(headers).to.include({ ...kept, 'content-security-policy': 'sandbox', 'x-content-type-options': 'nosniff' })
    for (const name of Object.keys(hostile)) expect(headers, name).to.not.have.property(name)
  })

  it('are not asked for at a stored URL that cannot be parsed, and failurePolicy decides', async () => {
    for (const { failurePolicy, status } of [
      { failurePolicy: 'Ignore', status: 201 },
      { failurePolicy: 'Fail', status: 500 },
    ]) {
      const config = { url: `https://[fe80::1%25eth0]:${server.port}/hook`, caBundle: clientConfig().caBundle }
      const by = await withWebhooks('Validating', 1, { clientConfig: config, failurePolicy })
      const reply = await send(by, 'POST', maps, { metadata: { name: 'a' } })
      expect(reply.status, reply.text).to.equal(status)
      if (status === 500) expect(reply.text).to.contain('failed calling webhook').and.contain('fe80::1%25eth0')
    }
  })
})
