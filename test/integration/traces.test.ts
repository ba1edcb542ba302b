// Traces as a collector of OpenTelemetry receives them: from `kcp start`, and from replicas that pass a request on.
import { expect } from 'chai'
import { kubectl, runKcp, startCluster, waitFor } from '#test/support/index.ts'
import { startTraceCollector, type CollectedSpan, type TraceCollector } from '#test/support/trace-collector.ts'
import { startWebhookServer, type WebhookServer } from '#test/support/webhook-server.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'
import { openRawClient } from './raw-client.ts'
import { startReplicas, type ReplicaSet } from './replicas.ts'

const all = ['--tracing-sampling-rate-per-million', '1000000']
const secretText = 'do-not-write-me-down'
const maps = '/api/v1/namespaces/default/configmaps'
const theirs = { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId: '00f067aa0ba902b7' }
const traceparent = `00-${theirs.traceId}-${theirs.spanId}-01`

const webSocket = [
  ...['Upgrade', 'websocket', 'Sec-WebSocket-Version', '13', 'Sec-WebSocket-Key', 'dGhlIHNhbXBsZSBub25jZQ=='],
]

/** Batches are sent every 5 s. */
const deadlineMs = 40_000

/** The span of the request with this audit id in the process that answered it. */
async function requestSpan(
  { spans }: TraceCollector,
  auditId: unknown,
  answeredBy = (span: CollectedSpan): boolean => span.kind === 2,
): Promise<CollectedSpan> {
  const found = (): CollectedSpan | undefined =>
    spans.find((span) => span.attributes['audit-id'] === auditId && answeredBy(span))
  await waitFor(async () => found() !== undefined, { what: `the span of request ${String(auditId)}`, deadlineMs })
  return found()!
}

/** Lets the processes that the tests of this block start send their spans soon. */
function sendSoon(): void {
  const name = 'OTEL_BSP_SCHEDULE_DELAY'
  const former = process.env[name]
  before(() => void (process.env[name] = '200'))
  after(() => {
    if (former === undefined) Reflect.deleteProperty(process.env, name)
    else process.env[name] = former
  })
}

/** The names of the spans below this one, each indented below its parent; not `Turn`, which a busy process adds. */
function tree({ spans }: TraceCollector, { spanId, name }: CollectedSpan, indent = ''): string[] {
  const below = spans.filter((span) => span.parentSpanId === spanId && span.name !== 'Turn')
  return [indent + name, ...below.flatMap((span) => tree({ spans } as TraceCollector, span, `${indent}  `))]
}

describe('traces of kcp start', function () {
  this.timeout(120_000)
  sendSoon()
  let collector: TraceCollector
  let hooks: WebhookServer
  let kcp: KcpInstance
  let acme: Tenant

  before(async () => {
    collector = await startTraceCollector()
    hooks = await startWebhookServer()
    kcp = await startInstance(['--tracing-endpoint', collector.endpoint, ...all, '--egress-allow', '127.0.0.0/8'])
    acme = await kcp.tenant('acme')
  })
  after(async () => {
    await kcp[Symbol.asyncDispose]()
    await hooks[Symbol.asyncDispose]()
    await collector[Symbol.asyncDispose]()
  })

  it('show a kubectl create with its authentication, authorization and write to the store', async () => {
    await acme.kubectl(['create', 'configmap', 'named', '--from-literal', `password=${secretText}`])
    const created = (): CollectedSpan | undefined =>
      collector.spans.find(
        ({ name, attributes }) =>
          name === 'POST /api/v1/namespaces/{:namespace}/configmaps' &&
          String(attributes['user_agent.original']).startsWith('kubectl'),
      )
    await waitFor(async () => created() !== undefined, { what: 'the span of the create', deadlineMs })
    const span = created()!
    expect(span).to.include({ service: 'kcp', kind: 2, parentSpanId: '', statusCode: 0 })
    expect(span.attributes).to.include({
      'http.request.method': 'POST',
      'http.response.status_code': 201,
      'url.path': '/clusters/acme/api/v1/namespaces/default/configmaps',
      resource: 'configmaps',
      verb: 'create',
    })
    expect(span.attributes['kcp.logical_cluster']).to.match(/^[a-z0-9]{8,}$/)
    expect(span.attributes['audit-id']).to.match(/^[0-9a-f-]{36}$/)
    expect(span.durationMs).to.be.greaterThan(0)
    expect(tree(collector, span)).to.deep.equal([
      'POST /api/v1/namespaces/{:namespace}/configmaps',
      '  Authentication',
      '  Authorization',
      '  Answer',
      '    Store create',
    ])
    expect(collector.misplaced).to.deep.equal([])
  })

  it('show the calls of webhooks, which are told of the trace', async () => {
    const webhook = {
      name: 'asked.example.com',
      clientConfig: hooks.at('/allow'),
      rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['configmaps'] }],
      sideEffects: 'None',
      admissionReviewVersions: ['v1'],
    }
    const configuration = {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: 'asked' },
      webhooks: [webhook],
    }
    await acme.kubectl(['create', '-f', '-'], { input: configuration })
    const answer = await acme.http.request('POST', acme.base + maps, { body: { metadata: { name: 'asked' } } })
    expect(answer.status).to.equal(201)
    const span = await requestSpan(collector, answer.headers['audit-id'])
    await acme.kubectl(['delete', 'validatingwebhookconfiguration', 'asked'])
    expect(tree(collector, span)).to.deep.equal([
      'POST /api/v1/namespaces/{:namespace}/configmaps',
      '  Authentication',
      '  Authorization',
      '  Answer',
      '    Admission validate',
      '      HTTP POST',
      '    Store create',
    ])
    const call = collector.spans.find(({ traceId, name }) => traceId === span.traceId && name === 'HTTP POST')!
    expect(call).to.include({ kind: 3 })
    expect(call.attributes).to.include({
      'server.address': `127.0.0.1:${hooks.port}`,
      'http.response.status_code': 200,
    })
    expect(hooks.asked.at(-1)).to.include({ traceparent: `00-${call.traceId}-${call.spanId}-01` })
  })

  it('show the write of a large object, which another thread prepares', async () => {
    const data = Object.fromEntries(Array.from({ length: 60_000 }, (_, i) => [`k${i}`, '']))
    const answer = await acme.http.request('POST', acme.base + maps, { body: { metadata: { name: 'large' }, data } })
    expect(answer.status).to.equal(201)
    const span = await requestSpan(collector, answer.headers['audit-id'])
    expect(tree(collector, span)).to.deep.equal([
      'POST /api/v1/namespaces/{:namespace}/configmaps',
      '  Authentication',
      // Large bodies are received a few at a time.
      '  Limits',
      '  Authorization',
      '  Answer',
      '    Offload',
      '      Store create',
    ])
  })

  it('show refused requests, and what they were refused by', async () => {
    const unknown = openRawClient({ port: kcp.port })
    const headers = ['authorization', `Bearer ${secretText}`]
    const refused = await unknown.request('GET', acme.base + maps, { headers })
    expect(refused.status).to.equal(401)
    const span = await requestSpan(collector, refused.headers['audit-id'])
    expect(span.attributes).to.include({ 'http.response.status_code': 401 })
    const [authentication] = collector.spans.filter(({ parentSpanId }) => parentSpanId === span.spanId)
    expect(authentication).to.include({ name: 'Authentication', statusCode: 2 })
    expect(authentication!.attributes).to.include({ 'error.type': 'Unauthorized' })
    const misplaced = await unknown.request('GET', '/clusters/acme/api/v1/namespaces/%2e%2e/pods')
    expect(misplaced.status).to.equal(400)
    expect((await requestSpan(collector, misplaced.headers['audit-id'])).name).to.equal('GET')
    await unknown[Symbol.asyncDispose]()
  })

  it("go on from those of the installation's administrators; those of tenants are links", async () => {
    const options = { headers: ['traceparent', traceparent, 'tracestate', 'vendor=x', 'baggage', 'a=b'] }
    const ofAdmin = await kcp.admin.http.request('GET', '/clusters/root/api/v1/namespaces', options)
    const ofTenant = await acme.http.request('GET', `${acme.base}/api/v1/namespaces`, options)
    expect([ofAdmin.status, ofTenant.status]).to.deep.equal([200, 200])
    const admin = await requestSpan(collector, ofAdmin.headers['audit-id'])
    expect([admin.traceId, admin.parentSpanId, admin.links]).to.deep.equal([theirs.traceId, theirs.spanId, []])
    const tenant = await requestSpan(collector, ofTenant.headers['audit-id'])
    expect(tenant.traceId).not.to.equal(theirs.traceId)
    expect([tenant.parentSpanId, tenant.links]).to.deep.equal(['', [theirs]])
  })

  it('have reconciles of controllers, whose requests are their steps', async () => {
    const reconcile = collector.spans.find(
      ({ name, attributes }) => name === 'Reconcile logical-cluster' && attributes['key'] === 'acme',
    )!
    expect(reconcile).to.include({ parentSpanId: '', service: 'kcp' })
    const reconciles = collector.spans
      .filter(({ name }) => name === 'Reconcile logical-cluster')
      .flatMap((span) => tree(collector, span))
    expect(reconciles).to.include('  HTTP PATCH')
    expect(reconciles).to.include('    PATCH /apis/kcp.dev/v1alpha1/logicalclusters/{:name}/status')
  })

  it('end with the answer of a watch, however long the watch lasts', async () => {
    const watch = await acme.http.watch(`${acme.base}${maps}?watch=true`)
    await waitFor(
      async () =>
        collector.spans.some(
          ({ attributes }) => attributes['verb'] === 'watch' && attributes['url.path'] === acme.base + maps,
        ),
      {
        what: 'the span of a watch that is open',
        deadlineMs,
      },
    )
    await watch[Symbol.asyncDispose]()
  })

  it('show upgrades until they are answered', async () => {
    const exec = `/api/v1/namespaces/default/pods/none/exec?command=${secretText}`
    expect((await acme.http.upgrade(acme.base + exec, webSocket)).status).to.equal(404)
    const watch = await acme.http.upgrade(`${acme.base}${maps}?watch=true&labelSelector=of-a-web-socket`, webSocket)
    expect(watch.status).to.equal(101)
    const answered = (name: string, status: number): boolean =>
      collector.spans.some(
        (span) => span.name === `GET ${name}` && span.attributes['http.response.status_code'] === status,
      )
    await waitFor(
      async () =>
        answered('/api/v1/namespaces/{:namespace}/pods/{:name}/exec', 404) &&
        answered('/api/v1/namespaces/{:namespace}/configmaps', 101),
      { what: 'the spans of two upgrades', deadlineMs },
    )
    watch.socket?.destroy()
  })

  it('have short attributes, and neither queries nor tokens nor what objects contain', async () => {
    const long = 'x'.repeat(10_000)
    const headers = ['user-agent', long, 'traceparent', `01-${theirs.traceId}-${theirs.spanId}-01-${long}`]
    const path = `${acme.base}/api/v1/namespaces/default/${long}?labelSelector=${secretText}`
    const answer = await acme.http.request('GET', path, { headers })
    const span = await requestSpan(collector, answer.headers['audit-id'])
    expect(span.name.length).to.equal(256)
    expect(span.links).to.deep.equal([])
    for (const { attributes } of collector.spans)
      for (const value of Object.values(attributes)) expect(String(value).length).to.be.at.most(256)
    expect(JSON.stringify(collector.spans)).not.to.contain(secretText)
  })
})

describe('traces of requests to a member', function () {
  this.timeout(180_000)
  sendSoon()

  it('are steps of the reconciles that send them, and name the member', async () => {
    await using collector = await startTraceCollector()
    await using member = await startCluster({ name: 'east' })
    await using kcp = await startInstance(['--tracing-endpoint', collector.endpoint, ...all])
    await runKcp(['member', 'join', 'east', '--kubeconfig', member.kubeconfig, '--root-dir', kcp.rootDir])
    const { host } = new URL(member.server)
    const asked = (): CollectedSpan | undefined =>
      collector.spans.find(({ attributes, kind }) => attributes['server.address'] === host && kind === 3)
    await waitFor(async () => asked() !== undefined, { what: 'a request to the member', deadlineMs: 40_000 })
    const reconciles = (): CollectedSpan[] =>
      collector.spans.filter(({ traceId, parentSpanId }) => traceId === asked()!.traceId && parentSpanId === '')
    await waitFor(async () => reconciles().length === 1, { what: 'the visit that has sent it', deadlineMs })
    expect(reconciles()[0]!.name).to.match(/^Reconcile /)
  })
})

describe('kcp start without traces', function () {
  this.timeout(120_000)

  it('loads nothing of OpenTelemetry', async () => {
    const hooks = `import { registerHooks } from 'node:module'
      registerHooks({ load(url, context, next) {
        if (url.includes('/@opentelemetry/')) process.stderr.write('loaded ' + url + '\\n')
        return next(url, context)
      } })`
    const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hooks)}` }
    const loaded = async (...args: string[]): Promise<boolean> => {
      await using kcp = await startInstance(args, { env })
      const acme = await kcp.tenant('acme')
      expect((await acme.http.request('GET', acme.base + maps)).status).to.equal(200)
      return kcp.process.log().includes('/@opentelemetry/')
    }
    expect(await loaded()).to.equal(false)
    expect(await loaded('--tracing-endpoint', 'http://127.0.0.1:9')).to.equal(true)
  })
})

describe('traces of kcp start with a rate of 0', function () {
  this.timeout(120_000)
  sendSoon()

  it('have only what administrators of the installation record, whatever tenants ask for', async () => {
    await using collector = await startTraceCollector()
    await using kcp = await startInstance(['--tracing-endpoint', collector.endpoint])
    const acme = await kcp.tenant('acme')
    const headers = ['traceparent', traceparent]
    const ofTenant = await acme.http.request('GET', acme.base + maps, { headers })
    const ofAdmin = await kcp.admin.http.request('GET', '/clusters/root/api/v1/namespaces', { headers })
    expect([ofTenant.status, ofAdmin.status]).to.deep.equal([200, 200])
    await requestSpan(collector, ofAdmin.headers['audit-id'])
    expect(new Set(collector.spans.map(({ traceId }) => traceId))).to.deep.equal(new Set([theirs.traceId]))
  })
})

describe('a collector that is down', function () {
  this.timeout(120_000)

  it('costs spans and nothing else: they are counted, and the process ends in time', async () => {
    const kcp = await startInstance(['--tracing-endpoint', 'http://127.0.0.1:9', ...all])
    const acme = await kcp.tenant('acme')
    for (let i = 0; i < 600; i++) expect((await acme.http.request('GET', acme.base + maps)).status).to.equal(200)
    const { text } = await kcp.admin.http.request('GET', '/metrics')
    const valueOf = (name: string): number => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1] ?? NaN)
    expect(valueOf('kcp_trace_spans_total')).to.be.greaterThan(1800)
    expect(valueOf('kcp_trace_spans_exported_total')).to.equal(0)
    const started = performance.now()
    await kcp.process.stop()
    expect(performance.now() - started).to.be.lessThan(8000)
    await kcp[Symbol.asyncDispose]()
  })
})

describe('traces of two replicas', function () {
  this.timeout(300_000)
  sendSoon()
  let collector: TraceCollector
  let set: ReplicaSet

  before(async () => {
    collector = await startTraceCollector()
    set = await startReplicas(2, { args: ['--tracing-endpoint', collector.endpoint, ...all] })
    await set.create('acme', { owner: 'admin' })
  })
  after(async () => {
    await set[Symbol.asyncDispose]()
    await collector[Symbol.asyncDispose]()
  })

  it('show a request that one passes on to the other, and its write in the host, as one trace', async () => {
    const owner = await set.ownerOf('acme')
    const other = set.replicas.find((replica) => replica !== owner)!
    const kubeconfig = await set.kubeconfig('acme', other)
    await using client = openRawClient({ kubeconfig, host: other.address })
    const headers = ['traceparent', traceparent]
    const answer = await client.request('POST', `/clusters/acme${maps}`, { body: { metadata: { name: 'a' } }, headers })
    expect(answer.status).to.equal(201)
    const answered = await requestSpan(collector, answer.headers['audit-id'], ({ parentSpanId }) => parentSpanId !== '')
    const passedOn = (): CollectedSpan | undefined =>
      collector.spans.find(({ spanId }) => spanId === answered.parentSpanId)
    await waitFor(async () => passedOn() !== undefined, { what: 'the span of the other replica', deadlineMs })
    expect(passedOn()).to.include({ service: 'kcp-apiserver', kind: 2, parentSpanId: '' })
    expect(passedOn()!.attributes).to.include({ 'http.response.status_code': 201 })
    expect(passedOn()!.links).to.deep.equal([theirs])
    expect(answered.links).to.deep.equal([theirs])
    // The store writes more than the object at its first write.
    expect([...new Set(tree(collector, passedOn()!))].slice(0, 7)).to.deep.equal([
      'POST /api/v1/namespaces/{:namespace}/configmaps',
      '  POST /api/v1/namespaces/{:namespace}/configmaps',
      '    Authentication',
      '    Authorization',
      '    Answer',
      '      Store create',
      '        HTTP POST',
    ])
  })

  it('show an upgrade that one passes on to the other', async () => {
    const owner = await set.ownerOf('acme')
    const other = set.replicas.find((replica) => replica !== owner)!
    await using client = openRawClient({ kubeconfig: await set.kubeconfig('acme', other), host: other.address })
    const watch = await client.upgrade(`/clusters/acme${maps}?watch=true`, webSocket)
    expect(watch.status).to.equal(101)
    const found = (): CollectedSpan | undefined =>
      collector.spans.find(({ attributes }) => attributes['http.response.status_code'] === 101)
    await waitFor(async () => found() !== undefined, { what: 'the span of the upgrade', deadlineMs })
    const passedOn = (): boolean =>
      collector.spans.some(({ spanId, kind }) => spanId === found()!.parentSpanId && kind === 2)
    await waitFor(async () => passedOn(), { what: 'the span of the other replica', deadlineMs })
    watch.socket?.destroy()
  })

  it('go on where an administrator of the installation is passed on, linked to the hop', async () => {
    const owner = await set.ownerOf('acme')
    const other = set.replicas.find((replica) => replica !== owner)!
    const kubeconfig = await set.installationKubeconfig('acme', other)
    await using client = openRawClient({ kubeconfig, host: other.address })
    const answer = await client.request('GET', `/clusters/acme${maps}`, { headers: ['traceparent', traceparent] })
    expect(answer.status).to.equal(200)
    const span = await requestSpan(collector, answer.headers['audit-id'], ({ traceId }) => traceId === theirs.traceId)
    expect(span.parentSpanId).to.equal(theirs.spanId)
    const [hop] = span.links
    await waitFor(async () => collector.spans.some(({ spanId }) => spanId === hop!.spanId), {
      what: 'the span of the replica that passed it on',
      deadlineMs,
    })
  })

  it('go through the host: its API server passes the request on, and the operator has reconciles', async () => {
    await kubectl(set.host.kubeconfig, [
      ...['get', '--raw', `/apis/virtual.kcp.dev/v1alpha1/logicalclusters/acme/proxy${maps}`],
    ])
    const aggregated = (): CollectedSpan | undefined =>
      collector.spans.find(({ attributes }) => String(attributes['url.path']).endsWith(`/acme/proxy${maps}`))
    await waitFor(async () => aggregated() !== undefined, { what: 'the span of the aggregated request', deadlineMs })
    expect(aggregated()!.name).to.equal('GET /api/v1/namespaces/{:namespace}/configmaps')
    const reconciles = collector.spans.filter(
      ({ service, name }) => service === 'kcp-operator' && name.startsWith('Reconcile '),
    )
    expect(reconciles.map(({ name }) => name)).to.include('Reconcile logical-cluster')
    // A step of a reconcile is a request to kcp apiserver, which is an administrator's: one trace of two processes.
    const ids = new Set(reconciles.map(({ traceId }) => traceId))
    const inServer = collector.spans.filter(
      ({ service, kind, traceId }) => service === 'kcp-apiserver' && kind === 2 && ids.has(traceId),
    )
    expect(inServer).not.to.be.empty
  })

  it('cannot be forged by the header of a hop', async () => {
    const owner = await set.ownerOf('acme')
    await using client = openRawClient({ kubeconfig: await set.kubeconfig('acme', owner), host: owner.address })
    const headers = ['x-kcp-hop-traceparent', traceparent]
    expect((await client.request('GET', `/clusters/acme${maps}`, { headers })).status).to.equal(400)
  })
})
