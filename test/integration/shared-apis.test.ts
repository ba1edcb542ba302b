// Group apis.kcp.io: an API that one logical cluster exports and others bind, in a server with an embedded store.
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

const apis = '/apis/apis.kcp.io'

interface Response {
  readonly status: number
  readonly text: string
  readonly json: () => Record<string, unknown>
}

/** A request to the logical cluster of `tenant`; PATCH is a merge patch. */
async function ask(tenant: Tenant, method: string, path: string, body?: object): Promise<Response> {
  const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
  const options = body === undefined ? {} : { body: JSON.stringify(body), headers: ['content-type', type] }
  return tenant.http.request(method, `${tenant.base}${path}`, options)
}

/** The same, for a response that must be a success. */
async function get<T = KubeObject>(...request: Parameters<typeof ask>): Promise<T> {
  const { status, text } = await ask(...request)
  expect(status, `${request[1]} ${request[2]}: ${text}`).to.be.within(200, 201)
  return JSON.parse(text) as T
}

describe('shared APIs', function () {
  this.timeout(120_000)
  let kcp: KcpInstance
  let provider: Tenant

  before(async () => {
    kcp = await startInstance()
    provider = await kcp.tenant('provider')
  })
  after(() => kcp[Symbol.asyncDispose]())

  it('shows an export written as v1alpha1 in both versions, and loses nothing that v1alpha1 lacks', async () => {
    const old = {
      apiVersion: 'apis.kcp.io/v1alpha1',
      kind: 'APIExport',
      metadata: { name: 'both' },
      spec: {
        latestResourceSchemas: ['v1.gadgets.example.io'],
        permissionClaims: [{ group: '', resource: 'configmaps', all: true }],
      },
    }
    await get(provider, 'POST', `${apis}/v1alpha1/apiexports`, old)
    const path = (version: string): string => `${apis}/${version}/apiexports/both`
    const spec = (await get(provider, 'GET', path('v1alpha2')))['spec'] as Record<string, unknown[]>
    expect(spec['resources']).to.deep.equal([
      { group: 'example.io', name: 'gadgets', schema: 'v1.gadgets.example.io', storage: { crd: {} } },
    ])
    expect(spec['permissionClaims']?.[0]).to.include({ resource: 'configmaps', group: '' })
    const claims = [{ resource: 'configmaps', verbs: ['get'], namespaces: ['default'] }]
    await get(provider, 'PATCH', path('v1alpha2'), { spec: { permissionClaims: claims } })
    await get(provider, 'PUT', path('v1alpha1'), await get(provider, 'GET', path('v1alpha1')))
    const after = (await get(provider, 'GET', path('v1alpha2')))['spec'] as { permissionClaims: object[] }
    expect(after.permissionClaims[0]).to.deep.include({ verbs: ['get'], namespaces: ['default'] })
  })
})
