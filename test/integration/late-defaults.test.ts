// Objects that were stored before their CRD got many or large defaults: a list of them is answered in slices, and takes
// no more memory than one of large objects.
import { expect } from 'chai'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'
import { waitFor } from '#test/support/index.ts'

const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const things = '/apis/example.dev/v1/namespaces/default/things'
const objects = 300

function crd(fields: object): object {
  const schema = { type: 'object', properties: { spec: { type: 'object', default: {}, properties: fields } } }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'things.example.dev' },
    spec: {
      group: 'example.dev',
      scope: 'Namespaced',
      names: { plural: 'things', kind: 'Thing' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } }],
    },
  }
}
const lateDefaults = {
  large: { type: 'string', default: 'x'.repeat(500_000) },
  ...Object.fromEntries(Array.from({ length: 4000 }, (_, i) => [`f${i}`, { type: 'boolean', default: true }])),
}

describe('defaults that a CRD got after objects were stored', function () {
  this.timeout(180_000)
  let kcp: KcpInstance
  let acme: Tenant
  before(async () => {
    kcp = await startInstance()
    acme = await kcp.tenant('acme')
    const { status, text } = await acme.http.request('POST', acme.base + crds, { body: crd({}) })
    expect(status, text).to.equal(201)
    await waitFor(async () => (await acme.http.request('GET', acme.base + things)).status === 200, {
      what: 'the resource to be served',
      deadlineMs: 30_000,
    })
    for (let i = 0; i < objects; i++) {
      const body = { apiVersion: 'example.dev/v1', kind: 'Thing', metadata: { name: `t${i}` }, spec: {} }
      expect((await acme.http.request('POST', acme.base + things, { body })).status).to.equal(201)
    }
    const spec = crd(lateDefaults)
    const type = ['Content-Type', 'application/merge-patch+json']
    const patched = await acme.http.request('PATCH', `${acme.base}${crds}/things.example.dev`, {
      body: spec,
      headers: type,
    })
    expect(patched.status, patched.text.slice(0, 300)).to.equal(200)
  })
  after(() => kcp[Symbol.asyncDispose]())

  const blocked = async (): Promise<number> => {
    const { text } = await kcp.admin.http.request('GET', '/metrics')
    return Number(/^kcp_event_loop_blocked_longest_seconds (.*)$/m.exec(text)?.[1]) * 1000
  }

  for (const { title, accept, shows } of [
    { title: 'a list', accept: 'application/json', shows: '"f10":true' },
    { title: 'a table', accept: 'application/json;as=Table;v=v1;g=meta.k8s.io', shows: '"rows"' },
    {
      title: 'a list of metadata',
      accept: 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
      shows: 't299',
    },
    { title: 'a list as YAML', accept: 'application/yaml', shows: 'f10: true' },
  ])
    it(`${title} shows some of them to all, in slices`, async () => {
      await blocked()
      const response = await acme.http.request('GET', acme.base + things, { headers: ['Accept', accept] })
      // As YAML, a list has a limit.
      expect([200, 406]).to.include(response.status)
      if (response.status === 200) expect(response.text).to.include(shows)
      expect(response.text.length).to.be.below(objects * 60_000)
      // In one piece it took seconds. The measure counts what other programs take of the processor.
      expect(await blocked()).to.be.below(1000)
    })
})
