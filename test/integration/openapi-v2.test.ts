// /openapi/v2 with the requests that clients send.
import { expect } from 'chai'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'
import type { RawResponse } from './raw-client.ts'

const protobuf = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'

describe('OpenAPI v2', () => {
  let kcp: KcpInstance
  let acme: Tenant
  let bob: Tenant
  before(async () => {
    kcp = await startInstance()
    acme = await kcp.tenant('acme')
    bob = await kcp.tenant('bob')
    await acme.kubectl(['apply', '-f', '-'], { input: widgets })
    await acme.kubectl(['wait', '--for=condition=Established', 'crd/widgets.example.dev', '--timeout=20s'])
  })
  after(() => kcp[Symbol.asyncDispose]())

  const ask = ({ http, base }: Tenant, ...headers: string[]): Promise<RawResponse> =>
    http.request('GET', `${base}/openapi/v2`, { headers })

  it('lets kubectl apply a List, of built-in and of custom objects', async () => {
    const items = [
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'one' }, data: { a: 'b' } },
      { apiVersion: 'example.dev/v1', kind: 'Widget', metadata: { name: 'two' }, spec: { size: 3 } },
    ]
    const { stdout } = await acme.kubectl(['apply', '-f', '-'], { input: { apiVersion: 'v1', kind: 'List', items } })
    expect(stdout).to.match(/configmap\/one created\nwidget.example.dev\/two created/)
  })

  it('contains the custom resources of its own logical cluster only', async () => {
    const definitions = async (tenant: Tenant): Promise<object> =>
      (await ask(tenant, 'Accept', 'application/json')).json()['definitions'] as object
    expect(await definitions(acme)).to.include.keys('dev.example.v1.Widget', 'io.k8s.api.core.v1.Pod')
    expect(await definitions(bob)).to.not.have.property('dev.example.v1.Widget')
    expect((await ask(acme)).headers.etag).to.not.equal((await ask(bob)).headers.etag)
  })

  for (const { accept, status, type } of [
    { accept: '', status: 200, type: 'application/json' },
    { accept: '*/*', status: 200, type: 'application/json' },
    { accept: protobuf, status: 200, type: protobuf },
    { accept: 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf', status: 200, type: protobuf },
    { accept: `application/json;q=0.5, ${protobuf}`, status: 200, type: protobuf },
    { accept: 'text/html', status: 406, type: 'application/json' },
  ])
    it(`answers Accept: ${accept || '(none)'} with ${status} ${type}`, async () => {
      const response = await ask(acme, ...(accept === '' ? [] : ['Accept', accept]))
      expect(response.status).to.equal(status)
      expect(response.headers['content-type']).to.equal(type)
    })

  it('is compressed for clients that accept it, and not sent again with a matching ETag', async () => {
    const zipped = await ask(acme, 'Accept', protobuf, 'Accept-Encoding', 'gzip')
    expect(zipped.headers['content-encoding']).to.equal('gzip')
    const again = await ask(acme, 'If-None-Match', zipped.headers.etag ?? '')
    expect(again.status).to.equal(304)
    expect(again.text).to.equal('')
  })
})

const widgets = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.example.dev' },
  spec: {
    group: 'example.dev',
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: { spec: { type: 'object', properties: { size: { type: 'integer' } } } },
          },
        },
      },
    ],
  },
}
