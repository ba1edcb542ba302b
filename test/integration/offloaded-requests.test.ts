// Requests with large objects run on another thread: they are answered like small ones, and do not delay others.
import { readdirSync, readFileSync } from 'node:fs'
import { expect } from 'chai'
import { at, isRecord } from './json.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'
import type { RawResponse } from './raw-client.ts'

/** Annotations without a meaning, so many that a request with them is offloaded. */
const padding: Readonly<Record<string, string>> = Object.fromEntries(
  Array.from({ length: 2000 }, (_, i) => [`p${i}`, '']),
)

interface Step {
  readonly title: string
  readonly method: string
  /** Below `/api/v1/namespaces/NAMESPACE`, or a full path if it begins with `/apis`; `NS` stands for the namespace. */
  readonly path: string
  readonly body?: object | readonly object[]
  readonly headers?: readonly string[]
}

const merge = ['Content-Type', 'application/merge-patch+json']
const strategic = ['Content-Type', 'application/strategic-merge-patch+json']
const jsonPatch = ['Content-Type', 'application/json-patch+json']
const table = ['Accept', 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json']
const metadataOnly = ['Accept', 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json']
const configMap = (name: string, rest: object = {}): object => ({ metadata: { name }, data: { a: 'b' }, ...rest })
const container = { name: 'c', image: 'nginx' }
const statefulSet = {
  metadata: { name: 'web' },
  spec: {
    replicas: 2,
    serviceName: 'web',
    selector: { matchLabels: { app: 'web' } },
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [container] } },
  },
}
const widget = (spec: object): object => ({
  apiVersion: 'heavy.example.com/v1',
  kind: 'Widget',
  metadata: { name: 'w' },
  spec,
})

const steps: readonly Step[] = [
  { title: 'a create', method: 'POST', path: '/configmaps', body: configMap('a') },
  { title: 'the same create again', method: 'POST', path: '/configmaps', body: configMap('a') },
  {
    title: 'a generated name',
    method: 'POST',
    path: '/configmaps?dryRun=All',
    body: { metadata: { generateName: 'g-' } },
  },
  { title: 'a dry run', method: 'POST', path: '/configmaps?dryRun=All', body: configMap('dry') },
  { title: 'the result of the dry run', method: 'GET', path: '/configmaps/dry' },
  { title: 'an unknown field', method: 'POST', path: '/configmaps?dryRun=All', body: configMap('b', { datum: 1 }) },
  {
    title: 'an unknown field, strictly',
    method: 'POST',
    path: '/configmaps?fieldValidation=Strict',
    body: configMap('b', { datum: 1 }),
  },
  { title: 'a wrong key', method: 'POST', path: '/configmaps', body: configMap('b', { data: { 'a b': '' } }) },
  { title: 'a wrong type', method: 'POST', path: '/configmaps', body: configMap('b', { data: { a: 1 } }) },
  { title: 'another kind', method: 'POST', path: '/configmaps', body: configMap('b', { kind: 'Secret' }) },
  {
    title: 'another media type',
    method: 'POST',
    path: '/configmaps',
    body: configMap('b'),
    headers: ['Content-Type', 'application/cbor'],
  },
  { title: 'what was created', method: 'GET', path: '/configmaps/a' },
  { title: 'it as a table', method: 'GET', path: '/configmaps/a', headers: table },
  { title: 'it as a table, at least as new', method: 'GET', path: '/configmaps/a?resourceVersion=1', headers: table },
  { title: 'its metadata', method: 'GET', path: '/configmaps/a', headers: metadataOnly },
  { title: 'the object indented', method: 'GET', path: '/configmaps/a?pretty=true' },
  { title: 'a merge patch', method: 'PATCH', path: '/configmaps/a', body: { data: { c: 'd' } }, headers: merge },
  { title: 'an empty patch', method: 'PATCH', path: '/configmaps/a', body: {}, headers: merge },
  {
    title: 'a JSON patch',
    method: 'PATCH',
    path: '/configmaps/a',
    body: [{ op: 'add', path: '/data/e', value: 'f' }],
    headers: jsonPatch,
  },
  {
    title: 'a JSON patch that fails',
    method: 'PATCH',
    path: '/configmaps/a',
    body: [{ op: 'test', path: '/data/e', value: 'g' }],
    headers: jsonPatch,
  },
  { title: 'a patch of a missing object', method: 'PATCH', path: '/configmaps/no', body: { data: {} }, headers: merge },
  { title: 'an update', method: 'PUT', path: '/configmaps/a', body: configMap('a', { data: { z: '' } }) },
  {
    title: 'an update of an old revision',
    method: 'PUT',
    path: '/configmaps/a',
    body: { metadata: { name: 'a', resourceVersion: '1' } },
  },
  { title: 'an update under another name', method: 'PUT', path: '/configmaps/a', body: configMap('b') },
  { title: 'a deletion', method: 'DELETE', path: '/configmaps/a' },
  { title: 'a second deletion', method: 'DELETE', path: '/configmaps/a' },
  { title: 'a StatefulSet', method: 'POST', path: '/apis/apps/v1/namespaces/NS/statefulsets', body: statefulSet },
  {
    title: 'its scale',
    method: 'GET',
    path: '/apis/apps/v1/namespaces/NS/statefulsets/web/scale',
  },
  {
    title: 'scaling it',
    method: 'PATCH',
    path: '/apis/apps/v1/namespaces/NS/statefulsets/web/scale',
    body: { spec: { replicas: 5 } },
    headers: merge,
  },
  {
    title: 'a strategic patch',
    method: 'PATCH',
    path: '/apis/apps/v1/namespaces/NS/statefulsets/web',
    body: { spec: { template: { spec: { containers: [{ name: 'd', image: 'busybox' }] } } } },
    headers: strategic,
  },
  {
    title: 'its status',
    method: 'PATCH',
    path: '/apis/apps/v1/namespaces/NS/statefulsets/web/status',
    body: { status: { replicas: 1 } },
    headers: merge,
  },
  {
    title: 'a Service',
    method: 'POST',
    path: '/services',
    body: { metadata: { name: 's' }, spec: { type: 'NodePort', ports: [{ port: 80 }] } },
  },
  {
    title: 'a custom resource',
    method: 'POST',
    path: '/apis/heavy.example.com/v1/namespaces/NS/widgets',
    body: widget({ color: 'red', size: 3 }),
  },
  {
    title: 'an invalid custom resource',
    method: 'POST',
    path: '/apis/heavy.example.com/v1/namespaces/NS/widgets',
    body: widget({ color: 5 }),
  },
  {
    title: 'a patch of the custom resource',
    method: 'PATCH',
    path: '/apis/heavy.example.com/v1/namespaces/NS/widgets/w',
    body: { spec: { color: 'blue' } },
    headers: merge,
  },
]

const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.heavy.example.com' },
  spec: {
    group: 'heavy.example.com',
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
            properties: {
              spec: {
                type: 'object',
                properties: { color: { type: 'string' }, shape: { type: 'string', default: 'round' } },
              },
            },
          },
        },
      },
    ],
  },
}

describe('requests with large objects', () => {
  let kcp: KcpInstance
  let acme: Tenant
  before(async () => {
    kcp = await startInstance()
    acme = await kcp.tenant('acme')
    for (const name of ['light', 'heavy']) await acme.kubectl(['create', 'namespace', name])
    await acme.kubectl(['create', '-f', '-'], { input: definition })
    await acme.kubectl(['wait', '--for=condition=Established', 'crd/widgets.heavy.example.com'])
  })
  after(() => kcp[Symbol.asyncDispose]())

  const ask = ({ method, path, body, headers }: Step, namespace: string): Promise<RawResponse> => {
    const whole = path.startsWith('/apis') ? path.replace('NS', namespace) : `/api/v1/namespaces/${namespace}${path}`
    const sent = namespace === 'heavy' && body !== undefined && !Array.isArray(body) ? padded(body) : body
    return acme.http.request(method, acme.base + whole, {
      ...(sent === undefined ? {} : { body: Array.isArray(sent) ? JSON.stringify(sent) : sent }),
      ...(headers === undefined ? {} : { headers }),
    })
  }

  for (const step of steps)
    it(`are answered like small ones: ${step.title}`, async () => {
      const light = await ask(step, 'light')
      const heavy = await ask(step, 'heavy')
      expect(heavy.status, heavy.text.slice(0, 300)).to.equal(light.status)
      expect(comparable(heavy)).to.deep.equal(comparable(light))
      expect(heavy.headers['warning']).to.equal(light.headers['warning'])
      expect(heavy.headers['content-type']).to.equal(light.headers['content-type'])
    })

  it('run on another thread', () => {
    const tasks = `/proc/${kcp.process.pid}/task`
    const names = readdirSync(tasks).map((task) => readFileSync(`${tasks}/${task}/comm`, 'utf8').trim())
    expect(names).to.include('offload')
  })

  it('allocate unique addresses and ports for Services', async () => {
    const body = (name: string, annotations: object): object => ({
      metadata: { name, annotations },
      spec: { type: 'NodePort', ports: [{ port: 80 }] },
    })
    const path = `${acme.base}/api/v1/namespaces/default/services`
    const responses = await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        acme.http.request('POST', path, { body: body(`s-${i}`, i % 2 === 0 ? {} : padding) }),
      ),
    )
    const made = responses.map(({ status, text }) => {
      expect(status, text.slice(0, 300)).to.equal(201)
      return JSON.parse(text) as unknown
    })
    expect(new Set(made.map((service) => at(service, 'spec.clusterIP')))).to.have.property('size', 40)
    expect(new Set(made.map((service) => at(service, 'spec.ports.0.nodePort')))).to.have.property('size', 40)
  })

  it('lose no update when many clients write one object', async () => {
    const path = `${acme.base}/api/v1/namespaces/default/configmaps`
    const body = { metadata: { name: 'shared', annotations: padding }, data: {} }
    expect((await acme.http.request('POST', path, { body })).status).to.equal(201)
    const responses = await Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        acme.http.request('PATCH', `${path}/shared`, { body: { data: { [`k${i}`]: '' } }, headers: merge }),
      ),
    )
    for (const { status, text } of responses) expect(status, text.slice(0, 300)).to.equal(200)
    const { data } = (await acme.http.request('GET', `${path}/shared`)).json()
    expect(Object.keys(isRecord(data) ? data : {})).to.have.length(30)
  })

  it('prevent granting rights that the writer does not have', async () => {
    await acme.kubectl(['create', 'clusterrole', 'roles', '--verb=create', '--resource=clusterroles'])
    await acme.kubectl(['create', 'clusterrolebinding', 'roles', '--clusterrole=roles', '--user=eve'])
    const role = {
      metadata: { name: 'all', annotations: padding },
      rules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }],
    }
    const path = `${acme.base}/apis/rbac.authorization.k8s.io/v1/clusterroles`
    const response = await acme.http.request('POST', path, { body: role, headers: ['Impersonate-User', 'eve'] })
    expect(response.status).to.equal(403)
    expect(response.text).to.contain('is attempting to grant RBAC permissions not currently held')
    expect((await acme.http.request('POST', path, { body: role })).status).to.equal(201)
    // CRDs compiled on that thread are updated as well, each for the very next request.
    const make = async (name: string): Promise<number> => {
      const body = { ...role, metadata: { ...role.metadata, name } }
      return (await acme.http.request('POST', path, { body, headers: ['Impersonate-User', 'eve'] })).status
    }
    for (let round = 0; round < 3; round++) {
      await acme.kubectl(['create', 'clusterrolebinding', 'eve-all', '--clusterrole=all', '--user=eve'])
      expect(await make(`all-${round}`), 'with all rights').to.equal(201)
      await acme.kubectl(['delete', 'clusterrolebinding', 'eve-all'])
      expect(await make(`none-${round}`), 'with rights taken away').to.equal(403)
    }
  })

  it('are limited in time: a list of very many values is not encoded as YAML', async () => {
    const path = `${acme.base}/api/v1/namespaces/yaml/configmaps`
    await acme.kubectl(['create', 'namespace', 'yaml'])
    const data = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`k${i}`, '']))
    for (let i = 0; i < 6; i++) {
      const made = await acme.http.request('POST', path, { body: { metadata: { name: `m-${i}` }, data } })
      expect(made.status, made.text.slice(0, 300)).to.equal(201)
    }
    const yaml = ['Accept', 'application/yaml']
    const whole = await acme.http.request('GET', path, { headers: yaml })
    expect(whole.status).to.equal(406)
    expect(whole.headers['content-type']).to.equal('application/yaml')
    expect(whole.text.replaceAll(/\s+/g, ' ')).to.include('ask for JSON or for a part of it (limit)')
    const part = await acme.http.request('GET', `${path}?limit=2`, { headers: yaml })
    expect([part.status, part.text.slice(0, 40)]).to.deep.equal([200, 'kind: ConfigMapList\napiVersion: v1\nmetad'])
    const indented = await acme.http.request('GET', `${path}?pretty=true`)
    expect(indented.status).to.equal(200)
    expect(indented.text).to.include('\n        "k19999": ""')
    expect(JSON.parse(indented.text)).to.have.property('items').with.lengthOf.at.least(6)
  })

  it('beyond the limit are answered 429 with Retry-After, and the others are answered', async () => {
    const path = `${acme.base}/api/v1/namespaces/default/configmaps`
    const data = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`k${i}`, '']))
    const responses = await Promise.all(
      Array.from({ length: 150 }, (_, i) =>
        acme.http.request('POST', path, { body: { metadata: { name: `many-${i}` }, data } }),
      ),
    )
    const of = (code: number): readonly RawResponse[] => responses.filter(({ status }) => status === code)
    expect(of(201).length).to.be.at.least(32)
    expect(of(429).length).to.be.at.least(1)
    expect(of(201).length + of(429).length).to.equal(150)
    for (const { headers } of of(429)) expect(headers).to.have.property('retry-after')
  })
})

/** Adds a large part without meaning. */
function padded(body: object): object {
  const { metadata } = body as { metadata?: object }
  return { ...body, metadata: { ...metadata, annotations: padding } }
}

/** The answer without parts that differ for every object. */
function comparable({ text }: RawResponse): unknown {
  const own = new Set(['uid', 'resourceVersion', 'creationTimestamp', 'namespace'])
  // What makes an object large has an owner too.
  const volatile = new Set(['clusterIP', 'clusterIPs', 'nodePort', 'Age', 'managedFields'])
  const document = JSON.parse(text.replaceAll('heavy', 'light'), (key, value: unknown) => {
    if (key === 'annotations' && isRecord(value) && 'p0' in value) return undefined
    if (key === 'name' && typeof value === 'string') return value.replace(/^g-.....$/, 'g-')
    if (key === 'cells' && Array.isArray(value)) return (value as unknown[]).slice(0, 2)
    return own.has(key) || volatile.has(key) ? undefined : value
  }) as unknown
  return document
}
