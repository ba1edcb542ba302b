// Admission webhooks in the parts that a comparison with a real server does not reach: many that hang, other logical
// clusters, large objects, kcp's own writes, audit lines.
import { expect } from 'chai'
import { waitFor } from '#test/support/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { lineScope, type AuditLog } from '#virtualapi/index.ts'
import { startWebhookServer, type WebhookServer } from '#test/support/webhook-server.ts'
import { startServedApi, type Reply, type ServedApi, type ServedTenant } from './served-api.ts'

const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const maps = '/api/v1/namespaces/default/configmaps'
const lines: string[] = []

describe('admission webhooks of a logical cluster', () => {
  let hooks: WebhookServer
  let served: ServedApi
  let count = 0

  before(async () => {
    hooks = await startWebhookServer()
    const audit: AuditLog = { scopeOf: () => lineScope, write: (event) => void lines.push(event.text()) }
    served = await startServedApi({ egress: { allow: ['127.0.0.0/8'] }, audit })
  })
  after(async () => {
    await served[Symbol.asyncDispose]()
    await hooks[Symbol.asyncDispose]()
  })
  const tenant = (): Promise<ServedTenant> => served.tenant(`hooks-${count++}`)

  async function configure(
    by: ServedTenant,
    kind: 'Mutating' | 'Validating',
    webhooks: readonly (Record<string, unknown> & { path?: string })[],
  ): Promise<void> {
    const all = webhooks.map(({ path = '/', ...webhook }, index) => ({
      ...{ name: `hook-${index}.shop.example.com`, clientConfig: hooks.at(path), sideEffects: 'None' },
      ...{ admissionReviewVersions: ['v1'], timeoutSeconds: 2 },
      rules: [{ operations: ['*'], apiGroups: [''], apiVersions: ['*'], resources: ['configmaps'] }],
      ...webhook,
    }))
    const type = `${kind}WebhookConfiguration`
    const body = { apiVersion: 'admissionregistration.k8s.io/v1', kind: type, metadata: { name: 'all' }, webhooks: all }
    const path = `${by.base}/apis/admissionregistration.k8s.io/v1/${type.toLowerCase()}s`
    expect((await by.request('POST', path, { body })).status).to.equal(201)
  }
  const create = (by: ServedTenant, name: string, more: Record<string, unknown> = {}, path = maps): Promise<Reply> =>
    by.request('POST', by.base + path, { body: { metadata: { name }, ...more } })
  const objectOf = (reply: Reply): KubeObject => JSON.parse(reply.text) as KubeObject

  it('cost only their own requests where 99 of 100 hang', async () => {
    const [one, other] = [await tenant(), await tenant()]
    const label = (index: number) => ({ matchLabels: { hook: String(index) } })
    await configure(
      one,
      'Validating',
      Array.from({ length: 100 }, (_, index) => ({
        path: index === 0 ? '/allow' : `/hang/${index}`,
        timeoutSeconds: 10,
        objectSelector: label(index),
      })),
    )
    const made = (by: ServedTenant, index: number): Promise<Reply> =>
      create(by, `m-${index}`, { metadata: { name: `m-${index}`, labels: { hook: String(index) } } })
    let ended = 0
    const stuck = Array.from({ length: 99 }, (_, index) => made(one, index + 1).finally(() => ended++))
    for (let i = 0; i < 5; i++) {
      expect((await create(one, `free-${i}`)).status).to.equal(201)
      expect((await create(other, `free-${i}`)).status).to.equal(201)
    }
    expect((await made(one, 0)).status).to.equal(201)
    expect(ended).to.equal(0)
    const codes = new Set((await Promise.all(stuck)).map(({ status }) => status))
    expect([...codes]).to.deep.equal([500])
  })
  it('are not asked in another logical cluster, nor by kcp itself', async () => {
    const [one, other] = [await tenant(), await tenant()]
    await configure(one, 'Validating', [{ path: '/answer/' + encoded({ allowed: false }) }])
    expect((await create(one, 'a')).status).to.equal(400)
    expect((await create(other, 'a')).status).to.equal(201)
    const own = served.api.client(one.name)
    const gvr = { group: '', version: 'v1', resource: 'configmaps' }
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'b', namespace: 'default' } }
    await own.create(gvr, object, { signal: served.signal })
  })
  it('cannot write the annotations of kcp', async () => {
    const one = await tenant()
    const patch = [{ op: 'add', path: '/metadata/annotations', value: { 'kcp.dev/placed-on': 'eu', mine: '1' } }]
    await configure(one, 'Mutating', [{ path: `/patch/${encoded(patch)}` }])
    const { metadata } = objectOf(await create(one, 'a'))
    expect(metadata.annotations).to.deep.equal({ mine: '1' })
  })
  it('cannot choose the uid of an object', async () => {
    const one = await tenant()
    const patch = [{ op: 'add', path: '/metadata/uid', value: 'chosen' }]
    await configure(one, 'Mutating', [{ path: `/patch/${encoded(patch)}` }])
    expect(objectOf(await create(one, 'a')).metadata.uid).to.not.equal('chosen')
  })
  it('are denied private addresses of this machine', async () => {
    const one = await tenant()
    const clientConfig = { url: 'https://169.254.169.254/latest' }
    await configure(one, 'Validating', [{ clientConfig }])
    const { status, text } = await create(one, 'a')
    expect(status).to.equal(500)
    expect(text).to.contain('dialing 169.254.169.254 is not permitted: it is a metadata address')
  })
  it('do not repeat what a server answered that is no webhook', async () => {
    const one = await tenant()
    await configure(one, 'Validating', [{ path: `/text/${Buffer.from('{"secret":"s3cr3t"}').toString('base64url')}` }])
    const { status, text } = await create(one, 'a')
    expect(status).to.equal(500)
    expect(text).to.contain('failed calling webhook').and.not.contain('s3cr3t')
  })
  it('are shown large objects, which the offload thread answers, and hold up no other', async () => {
    const one = await tenant()
    const patch = [{ op: 'add', path: '/metadata/annotations', value: { seen: 'yes' } }]
    const large = { data: Object.fromEntries(Array.from({ length: 30_000 }, (_, i) => [`key-${i}`, 'some value'])) }
    await configure(one, 'Mutating', [
      { path: `/patch/${encoded(patch)}`, reinvocationPolicy: 'IfNeeded' },
      { path: '/hang', timeoutSeconds: 3, objectSelector: { matchLabels: { slow: 'yes' } } },
    ])
    const slow = [1, 2, 3].map((index) =>
      create(one, `slow-${index}`, { ...large, metadata: { name: `slow-${index}`, labels: { slow: 'yes' } } }),
    )
    // A busy machine may refuse a large object for a moment, as clients know.
    const answered = async (): Promise<Reply | undefined> => {
      const reply = await create(one, 'large', large)
      return reply.status === 429 ? undefined : reply
    }
    const { status, text } = await waitFor(answered, { what: 'an answer that is not 429', deadlineMs: 60_000 })
    expect(status).to.equal(201)
    expect((JSON.parse(text) as KubeObject).metadata.annotations).to.deep.equal({ seen: 'yes' })
    expect(new Set((await Promise.all(slow)).map((reply) => reply.status))).to.deep.equal(new Set([500]))
  })
  it('reach a Service by its ready endpoints', async () => {
    const one = await tenant()
    const { caBundle } = hooks.at('/')
    await one.request('POST', `${one.base}/api/v1/namespaces`, { body: { metadata: { name: 'shop' } } })
    const inShop = (resource: string, body: unknown): Promise<Reply> =>
      one.request('POST', `${one.base}${resource}`, { body })
    await inShop('/api/v1/namespaces/shop/services', { metadata: { name: 'hook' }, spec: { ports: [{ port: 443 }] } })
    const clientConfig = { caBundle, service: { namespace: 'shop', name: 'hook', path: '/ready/refused' } }
    await configure(one, 'Validating', [{ clientConfig }])
    expect((await create(one, 'refused')).text).to.contain('no endpoints available for service')
    const slices = '/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices'
    const slice = (name: string, address: string, ready: boolean) => ({
      metadata: { name, labels: { 'kubernetes.io/service-name': 'hook' } },
      addressType: 'IPv4',
      endpoints: [{ addresses: [address], conditions: { ready } }],
      ports: [{ name: '', port: hooks.port }],
    })
    // The API refuses loopback addresses in EndpointSlices, so a ready endpoint has an address that egress denies.
    expect((await inShop(slices, slice('a', '10.1.2.3', false))).status).to.equal(201)
    expect((await create(one, 'refused')).text).to.contain('no endpoints available for service')
    expect((await inShop(slices, slice('b', '10.1.2.4', true))).status).to.equal(201)
    expect((await create(one, 'refused')).text).to.contain(
      'dialing hook.shop.svc is not permitted: it is a private address',
    )
  })
  it('leave their annotations in the audit line', async () => {
    const one = await tenant()
    const long = 'x'.repeat(5000)
    const response = { allowed: true, auditAnnotations: { why: 'because', long } }
    await configure(one, 'Mutating', [{ path: `/answer/${encoded(response)}` }])
    lines.length = 0
    await create(one, 'a')
    const { annotations } = JSON.parse(lines.at(-1) ?? '{}') as { annotations: Record<string, string> }
    expect(annotations).to.include({
      'hook-0.shop.example.com/why': 'because',
      'hook-0.shop.example.com/long': long,
      'mutation.webhook.admission.k8s.io/round_0_index_0': JSON.stringify({
        configuration: 'all',
        webhook: 'hook-0.shop.example.com',
        mutated: false,
      }),
    })
  })
})
