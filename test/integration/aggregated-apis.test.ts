// APIServices of a logical cluster that lead to a real aggregated API server: Kubernetes' sample-apiserver behind a
// Service without selector.
import { expect } from 'chai'
import type { JsonObject, KubeObject } from '#apimachinery/meta/index.ts'
import { ownAddress, startSampleApiServer, type SampleApiServer } from '#test/support/sample-api-server.ts'
import { hostService } from '#test/support/host-service.ts'
import { startServedApi, untilTrue, type Reply, type ServedApi, type ServedTenant } from './served-api.ts'

const apiServices = '/apis/apiregistration.k8s.io/v1/apiservices'
const flunders = '/apis/wardle.example.com/v1alpha1/namespaces/default/flunders'

interface Condition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
}

describe('aggregated API servers in a logical cluster', function () {
  this.timeout(300_000)
  const address = ownAddress()
  let served: ServedApi
  let sample: SampleApiServer
  let one: ServedTenant

  before(async () => {
    served = await startServedApi({ egress: { allow: [`${address}/32`] } })
    one = await served.tenant('aggregating')
    const { cert, key } = one.tls
    const ca = (one.tls as unknown as { ca: string }).ca
    const server = `https://127.0.0.1:${served.port}${one.base}`
    sample = await startSampleApiServer({ server, ca, client: { certificate: cert, key } })
    await send('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'wardle' } })
  })
  after(async () => {
    await sample[Symbol.asyncDispose]()
    await served[Symbol.asyncDispose]()
  })

  const send = async (method: string, path: string, body?: unknown, by = one): Promise<Reply> =>
    await by.request(method, by.base + path, body === undefined ? {} : { body })
  const json = async (path: string, headers: Record<string, string> = {}): Promise<JsonObject> => {
    const { status, text } = await one.request('GET', one.base + path, { headers })
    expect(status, text).to.equal(200)
    return JSON.parse(text) as JsonObject
  }
  const available = async (name = 'v1alpha1.wardle.example.com'): Promise<Condition | undefined> => {
    const { status } = (await json(`${apiServices}/${name}`)) as unknown as { status?: { conditions?: Condition[] } }
    return status?.conditions?.find(({ type }) => type === 'Available')
  }
  const untilReason = async (reason: string, name?: string): Promise<Condition> => {
    let last: Condition | undefined
    await untilTrue(
      async () => (last = await available(name))?.reason === reason,
      `the reason is ${reason}`,
      30_000,
    ).catch((error: unknown) => {
      throw new Error(`${(error as Error).message}: ${JSON.stringify(last)}`)
    })
    return last!
  }
  const apiService = (version: string, more: JsonObject = {}): JsonObject => ({
    ...{ apiVersion: 'apiregistration.k8s.io/v1', kind: 'APIService' },
    metadata: { name: `${version}.wardle.example.com` },
    spec: {
      ...{ group: 'wardle.example.com', version, groupPriorityMinimum: 2000, versionPriority: 15 },
      caBundle: Buffer.from(sample.ca).toString('base64'),
      service: { namespace: 'wardle', name: 'api' },
      ...more,
    },
  })

  it('are unavailable with upstream’s reasons until their Service can be reached', async () => {
    expect((await send('POST', apiServices, apiService('v1alpha1'))).status).to.equal(201)
    expect(await untilReason('ServiceNotFound')).to.include({
      status: 'False',
      message: 'service/api in "wardle" is not present',
    })
    const { items } = hostService({ name: 'api', namespace: 'wardle', address, port: sample.port }) as {
      items: KubeObject[]
    }
    const [service, slice] = items
    await send('POST', '/api/v1/namespaces/wardle/services', service)
    expect((await untilReason('EndpointsNotFound')).message).to.equal(
      'cannot find endpointslices for service/api in "wardle"',
    )
    const slices = '/apis/discovery.k8s.io/v1/namespaces/wardle/endpointslices'
    expect((await send('POST', slices, slice)).status).to.equal(201)
    expect(await untilReason('Passed')).to.include({ status: 'True', message: 'all checks passed' })
  })

  it('serve their kinds: create, list, watch, server-side apply, delete', async () => {
    const body = { apiVersion: 'wardle.example.com/v1alpha1', kind: 'Flunder', metadata: { name: 'a' }, spec: {} }
    const created = await send('POST', flunders, body)
    expect(created.status, created.text).to.equal(201)
    const watch = await one.open('GET', `${one.base}${flunders}?watch=1&resourceVersion=0`)
    const first = JSON.parse(String((await watch[Symbol.asyncIterator]().next()).value)) as { type: string }
    expect(first.type).to.equal('ADDED')
    watch.destroy()
    const { items } = (await json(flunders)) as unknown as { items: KubeObject[] }
    expect(items.map(({ metadata }) => metadata.name)).to.deep.equal(['a'])
    const headers = { 'content-type': 'application/apply-patch+yaml' }
    const applied = { ...body, metadata: { name: 'b' } }
    const path = `${one.base}${flunders}/b?fieldManager=test`
    expect((await one.request('PATCH', path, { body: applied, headers })).status).to.equal(201)
    expect((await send('DELETE', `${flunders}/a`)).status).to.equal(200)
  })

  it('have their condition when their server gives its first answer', async () => {
    expect((await send('DELETE', `${apiServices}/v1alpha1.wardle.example.com`)).status).to.equal(200)
    expect((await send('POST', apiServices, apiService('v1alpha1'))).status).to.equal(201)
    expect((await send('GET', flunders)).status).to.equal(200)
    expect(await available()).to.include({ status: 'True', message: 'all checks passed' })
  })

  it('are told who asks, and forged headers do not count', async () => {
    const user = await served.user(one, 'eve')
    const forged = { 'X-Remote-User': 'admin', 'X-Remote-Group': 'system:masters', 'X-Remote-Extra-Scopes': 'all' }
    const path = `${one.base}${flunders}`
    expect((await user.request('GET', path, { headers: forged })).status).to.equal(403)
    const rules = [{ apiGroups: ['wardle.example.com'], resources: ['flunders'], verbs: ['list'] }]
    const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/default'
    const metadata = { name: 'eve' }
    const apiVersion = 'rbac.authorization.k8s.io/v1'
    await send('POST', `${rbac}/roles`, { apiVersion, kind: 'Role', metadata, rules })
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'eve' }
    const subjects = [{ kind: 'User', name: 'eve', apiGroup: 'rbac.authorization.k8s.io' }]
    await send('POST', `${rbac}/rolebindings`, { apiVersion, kind: 'RoleBinding', metadata, roleRef, subjects })
    const listed = await user.request('GET', path, { headers: forged })
    expect(listed.status, listed.text).to.equal(200)
    expect((await user.request('POST', path, { headers: forged, body: {} })).status).to.equal(403)
    const other = await served.tenant('elsewhere')
    expect((await other.request('GET', other.base + flunders)).status).to.equal(404)
  })

  it('are in discovery, and their OpenAPI is in ours', async () => {
    const { groups } = (await json('/apis')) as unknown as { groups: { name: string }[] }
    // Before groups of custom resources, whose priority is 1,000.
    expect(groups.slice(-3).map(({ name }) => name)).to.deep.equal(['wardle.example.com', 'apis.kcp.io', 'kcp.dev'])
    expect(await json('/apis/wardle.example.com')).to.deep.include({ kind: 'APIGroup', name: 'wardle.example.com' })
    expect(await json('/apis/wardle.example.com/v1alpha1')).to.deep.include({ kind: 'APIResourceList' })
    const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
    const { items } = (await json('/apis', { accept })) as unknown as {
      items: { metadata: { name: string }; versions: { freshness: string; resources: { resource: string }[] }[] }[]
    }
    const [version] = items.find(({ metadata }) => metadata.name === 'wardle.example.com')?.versions ?? []
    expect(version?.freshness).to.equal('Current')
    expect(version?.resources.map(({ resource }) => resource)).to.deep.equal(['fischers', 'flunders'])
    const v2 = (await json('/openapi/v2')) as unknown as Record<'paths' | 'definitions', JsonObject>
    expect(v2.paths).to.include.keys(
      '/apis/wardle.example.com/v1alpha1/namespaces/{namespace}/flunders',
      '/api/v1/pods',
    )
    expect(Object.keys(v2.definitions).some((name) => name.endsWith('.wardle.v1alpha1.Flunder'))).to.equal(true)
    const { paths } = (await json('/openapi/v3')) as unknown as { paths: Record<string, { serverRelativeURL: string }> }
    const { serverRelativeURL = '' } = paths['apis/wardle.example.com/v1alpha1'] ?? {}
    const document = await one.request('GET', serverRelativeURL)
    expect(document.status, document.text.slice(0, 200)).to.equal(200)
    expect(JSON.parse(document.text)).to.have.nested.property('components.schemas')
  })

  it('are not verified by another authority', async () => {
    const wrong = Buffer.from((one.tls as unknown as { ca: string }).ca).toString('base64')
    const changed = [{ op: 'replace', path: '/spec/caBundle', value: wrong }]
    const headers = { 'content-type': 'application/json-patch+json' }
    const path = `${one.base}${apiServices}/v1alpha1.wardle.example.com`
    expect((await one.request('PATCH', path, { body: changed, headers })).status).to.equal(200)
    const refused = await send('GET', flunders)
    expect([refused.status, refused.text]).to.deep.equal([
      503,
      'error trying to reach service: tls: failed to verify certificate: x509: certificate signed by unknown authority',
    ])
  })

  it('are not reached at addresses that egress denies', async () => {
    const { items } = hostService({ name: 'denied', namespace: 'wardle', address: '169.254.169.254', port: 443 }) as {
      items: KubeObject[]
    }
    await send('POST', '/api/v1/namespaces/wardle/services', items[0])
    const slice = { ...items[1], endpoints: [{ addresses: ['10.255.255.1'], conditions: { ready: true } }] }
    const slices = '/apis/discovery.k8s.io/v1/namespaces/wardle/endpointslices'
    expect((await send('POST', slices, slice)).status).to.equal(201)
    const metadata = { service: { namespace: 'wardle', name: 'denied' } }
    expect((await send('POST', apiServices, apiService('v2', metadata))).status).to.equal(201)
    const refused = await send('GET', '/apis/wardle.example.com/v2/flunders')
    expect(refused.status).to.equal(503)
    expect(refused.text).to.contain('is not permitted: it is a private address')
    expect((await untilReason('FailedDiscoveryCheck', 'v2.wardle.example.com')).message).to.contain('is not permitted')
  })

  it('cannot take over a built-in group', async () => {
    const spec = { group: 'apps', version: 'v2', groupPriorityMinimum: 20000, versionPriority: 15 }
    const service = { namespace: 'wardle', name: 'api' }
    const body = {
      ...{ apiVersion: 'apiregistration.k8s.io/v1', kind: 'APIService', metadata: { name: 'v2.apps' } },
      spec: { ...spec, service },
    }
    const { status, text } = await send('POST', apiServices, body)
    expect(status).to.equal(422)
    expect(text).to.contain('spec.service: Forbidden: built-in groups are served by the logical cluster itself')
  })
})
