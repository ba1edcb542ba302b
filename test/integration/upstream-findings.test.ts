// Findings of Kubernetes' conformance suite, as fast HTTP tests: the suite itself takes minutes.
import { expect } from 'chai'
import { at, textAt } from './json.ts'
import { startServedApi, type Reply, type ServedApi, type ServedTenant } from './served-api.ts'

const json = (reply: Reply): unknown => JSON.parse(reply.text)
const groups = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

describe('a logical cluster', () => {
  let served: ServedApi
  let tenant: ServedTenant

  before(async () => {
    served = await startServedApi()
    tenant = await served.tenant('upstream')
  })
  after(() => served[Symbol.asyncDispose]())

  const ask = (method: string, path: string, options?: Parameters<ServedTenant['request']>[2]): Promise<Reply> =>
    tenant.request(method, `${tenant.base}${path}`, options)

  it('serves an Event of one version in the other, and selects by the fields of both', async () => {
    const event = {
      metadata: { name: 'told', namespace: 'default' },
      eventTime: '2026-01-01T00:00:00.000000Z',
      note: 'it happened',
      type: 'Normal',
      reason: 'Test',
      action: 'Do',
      reportingController: 'tester',
      reportingInstance: 'tester-0',
      regarding: { kind: 'Pod', namespace: 'default', name: 'p' },
    }
    const newer = '/apis/events.k8s.io/v1/namespaces/default/events'
    const core = '/api/v1/namespaces/default/events'
    expect((await ask('POST', newer, { body: event })).status).to.equal(201)
    expect(json(await ask('GET', `${core}/told`))).to.deep.include({
      message: 'it happened',
      reportingComponent: 'tester',
    })
    for (const path of [
      `${core}?fieldSelector=source=tester`,
      `${core}?fieldSelector=involvedObject.name=p`,
      `${newer}?fieldSelector=reportingController=tester`,
      `${newer}?fieldSelector=regarding.name=p`,
    ])
      expect(textAt(json(await ask('GET', path)), 'items.0.metadata.name'), path).to.equal('told')
    expect(at(json(await ask('GET', `${core}?fieldSelector=source=other`)), 'items')).to.deep.equal([])
  })

  it('indents JSON for curl and browsers, errors included', async () => {
    const get = (path: string, agent: string): Promise<Reply> => ask('GET', path, { headers: { 'user-agent': agent } })
    for (const path of [
      '/api/v1/namespaces/default',
      '/api/v1/namespaces/none',
      '/api/v1/namespaces',
      '/version',
      '/apis',
    ]) {
      const plain = await get(path, 'kubectl/v1.34.3')
      for (const agent of ['curl/8.5.0', 'Wget/1.21', 'Mozilla/5.0 (X11)']) {
        const indented = await get(path, agent)
        expect(indented.text, `${path} for ${agent}`).to.match(/^\{\n {2}"/)
        expect(json(indented), path).to.deep.equal(json(plain))
      }
      expect(plain.text, path).not.to.match(/\n./)
      expect((await get(`${path}?pretty=false`, 'curl/8.5.0')).text, path).not.to.match(/\n./)
      expect((await get(`${path}?pretty=true`, 'other')).text, path).to.match(/^\{\n {2}"/)
    }
  })

  it("refuses patches that leave values of the wrong type with 422 and a real server's message", async () => {
    const one = '/api/v1/namespaces/default/configmaps/patched'
    const created = await ask('POST', '/api/v1/namespaces/default/configmaps', {
      body: { metadata: { name: 'patched' }, data: { a: 'b' } },
    })
    expect(created.status).to.equal(201)
    const patch = (type: string, body: object): Promise<Reply> =>
      ask('PATCH', one, { body, headers: { 'content-type': `application/${type}+json` } })
    const strategic = await patch('strategic-merge-patch', { metadata: { labels: 'invalid' } })
    expect(strategic.status).to.equal(422)
    expect(textAt(json(strategic), 'message')).to.equal(
      ' "" is invalid: patch: Invalid value: "map[metadata:map[labels:invalid]]": cannot restore map from string',
    )
    for (const merged of [
      await patch('merge-patch', { metadata: { labels: 'invalid' } }),
      await patch('json-patch', [{ op: 'add', path: '/metadata/labels', value: 'invalid' }]),
    ]) {
      expect(merged.status).to.equal(422)
      expect(textAt(json(merged), 'details.causes.0.field')).to.equal('patch')
      expect(textAt(json(merged), 'message')).to.contain(
        'json: cannot unmarshal string into Go struct field ObjectMeta.metadata.labels of type map[string]string',
      )
    }
    const renamed = await patch('strategic-merge-patch', { kind: 'Secret', apiVersion: 'v2', data: { a: 'c' } })
    expect(json(renamed)).to.deep.include({ kind: 'ConfigMap', apiVersion: 'v1', data: { a: 'c' } })
  })

  it('fills in a new default of a custom resource on objects written before it', async () => {
    const version = (a: object): object => ({
      name: 'v1',
      served: true,
      storage: true,
      schema: { openAPIV3Schema: { type: 'object', properties: { a } } },
    })
    const definition = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'gadgets.e.com' },
      spec: {
        group: 'e.com',
        scope: 'Namespaced',
        names: { plural: 'gadgets', kind: 'Gadget' },
        versions: [version({ type: 'string' })],
      },
    }
    const gadgets = '/apis/e.com/v1/namespaces/default/gadgets'
    const gadget = { apiVersion: 'e.com/v1', kind: 'Gadget', metadata: { name: 'g' } }
    expect((await ask('POST', groups, { body: definition })).status).to.equal(201)
    expect((await ask('POST', gadgets, { body: gadget })).status).to.equal(201)
    const patch = { spec: { versions: [version({ type: 'string', default: 'A' })] } }
    const patched = await ask('PATCH', `${groups}/gadgets.e.com`, {
      body: patch,
      headers: { 'content-type': 'application/merge-patch+json' },
    })
    expect(patched.status).to.equal(200)
    const read = json(await ask('GET', `${gadgets}/g`))
    expect(read).to.have.property('a', 'A')
    expect(at(json(await ask('GET', gadgets)), 'items.0.a')).to.equal('A')
    // An unrelated write stores the filled-in default.
    const labelled = await ask('PATCH', `${gadgets}/g`, {
      body: { metadata: { labels: { l: '1' } } },
      headers: { 'content-type': 'application/merge-patch+json' },
    })
    expect(json(labelled)).to.have.property('a', 'A')
  })

  it('never answers a review as a table', async () => {
    const review = { spec: { nonResourceAttributes: { path: '/', verb: 'get' } } }
    const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io'
    const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
    expect((await ask('POST', path, { body: review, headers: { accept } })).status).to.equal(406)
    expect((await ask('POST', path, { body: review })).status).to.equal(201)
  })

  it('reports the range of Service addresses, and serves IPAddresses of both families', async () => {
    expect(
      at(json(await ask('GET', '/apis/networking.k8s.io/v1/servicecidrs/kubernetes')), 'spec.cidrs'),
    ).to.deep.equal(['10.96.0.0/12'])
    const addresses = '/apis/networking.k8s.io/v1/ipaddresses'
    const parentRef = { resource: 'services', namespace: 'default', name: 's' }
    const create = (name: string): Promise<Reply> =>
      ask('POST', addresses, { body: { metadata: { name }, spec: { parentRef } } })
    expect((await create('fe80::42:1dff:fe84:f9e2')).status).to.equal(201)
    expect((await create('FE80::1')).status).to.equal(422)
  })

  it('refuses a pod with a missing RuntimeClass, and applies the LimitRange to a pod', async () => {
    const pods = '/api/v1/namespaces/default/pods'
    const pod = (name: string, spec: object = {}): object => ({
      metadata: { name },
      spec: { containers: [{ name: 'c', image: 'x' }], ...spec },
    })
    const refused = await ask('POST', pods, { body: pod('r', { runtimeClassName: 'none' }) })
    expect([refused.status, textAt(json(refused), 'message')]).to.deep.equal([
      403,
      'pods "r" is forbidden: pod rejected: RuntimeClass "none" not found',
    ])
    const limits = [{ type: 'Container', default: { cpu: '200m' }, defaultRequest: { cpu: '100m' } }]
    const range = { metadata: { name: 'l' }, spec: { limits } }
    expect((await ask('POST', '/api/v1/namespaces/default/limitranges', { body: range })).status).to.equal(201)
    const created = json(await ask('POST', pods, { body: pod('p') }))
    expect(at(created, 'spec.containers.0.resources')).to.deep.equal({
      limits: { cpu: '200m' },
      requests: { cpu: '100m' },
    })
    expect(textAt(created, 'status.qosClass')).to.equal('Burstable')
  })
})
