// Custom objects whose root has members that JavaScript enumerates first (`"1"`) or treats specially (`__proto__`).
import { expect } from 'chai'
import { isDeepStrictEqual } from 'node:util'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'things.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'things', singular: 'thing', kind: 'Thing', listKind: 'ThingList' },
    versions: ['v1', 'v2'].map((name) => ({
      name,
      served: true,
      storage: name === 'v1',
      schema: {
        openAPIV3Schema: {
          type: 'object',
          'x-kubernetes-preserve-unknown-fields': true,
          // Makes readers see a form that has to be decoded and encoded again.
          properties: { color: { type: 'string', ...(name === 'v1' && { default: 'red' }) } },
        },
      },
    })),
  },
}

/** As text, so that `__proto__` is a member and a name may be there twice. */
const members =
  '"10":[1],"1":{"metadata":{"resourceVersion":"5"}},"__proto__":{"a":1},"ключ":{"metadata":{}},"0":null,"0":2'
const textOf = (name: string, more = ''): string =>
  `{${members},"apiVersion":"example.com/v1",${more}"kind":"Thing","metadata":{"name":"${name}"}}`

interface Shown {
  readonly metadata: { readonly name: string; readonly resourceVersion: string; readonly uid: string }
}

describe('a custom object with unusual members at its root', function () {
  this.timeout(60_000)
  let instance: KcpInstance
  let tenant: Tenant
  let path: string

  before(async () => {
    instance = await startInstance()
    tenant = await instance.tenant('acme')
    path = `${tenant.base}/apis/example.com/v1/namespaces/default/things`
    await tenant.kubectl(['create', '-f', '-'], { input: definition })
    await tenant.kubectl(['wait', '--for=condition=Established', 'crd/things.example.com', '--timeout=20s'])
    const created = await tenant.http.request('POST', path, {
      body: textOf('a'),
      headers: ['content-type', 'application/json'],
    })
    expect(created.status, created.text).to.equal(201)
    requireWhole(created.json())
  })
  after(async () => {
    await instance[Symbol.asyncDispose]()
  })

  /** Everything that was sent, the default, and a revision that is one. */
  function requireWhole(shown: object): Shown {
    const { apiVersion: _, kind, metadata, color, ...rest } = shown as Shown & Record<string, unknown>
    expect(kind).to.equal('Thing')
    expect(color).to.equal('red')
    expect(metadata.resourceVersion).to.match(/^[1-9]\d*$/)
    expect(metadata.uid).to.be.a('string')
    expect(isDeepStrictEqual(rest, JSON.parse(`{${members}}`)), JSON.stringify(rest)).to.equal(true)
    return { metadata }
  }
  const get = async (url: string, accept = 'application/json'): Promise<Record<string, unknown>> => {
    const { status, text, json } = await tenant.http.request('GET', url, { headers: ['accept', accept] })
    expect(status, text).to.equal(200)
    return json()
  }

  it('is read, listed, converted and shown in a table with every member', async () => {
    requireWhole(await get(`${path}/a`))
    requireWhole(await get(`${path.replace('/v1/', '/v2/')}/a`))
    const { items } = (await get(path)) as unknown as { items: Shown[] }
    expect(items.map((item) => requireWhole(item).metadata.name)).to.deep.equal(['a'])
    const table = await get(`${path}?includeObject=Object`, 'application/json;as=Table;v=v1;g=meta.k8s.io')
    const { rows } = table as unknown as { rows: { object: Shown }[] }
    expect(rows.map(({ object }) => requireWhole(object).metadata.name)).to.deep.equal(['a'])
  })

  it('is listed over all logical clusters with every member', async () => {
    const { json } = await instance.admin.http.request('GET', '/clusters/*/apis/example.com/v1/things')
    const { items } = json() as unknown as { items: Shown[] }
    expect(items.map((item) => requireWhole(item).metadata.name)).to.deep.equal(['a'])
  })

  it('keeps its members through a patch, an update and a restart', async () => {
    const patched = await tenant.http.request('PATCH', `${path}/a`, {
      body: '{"metadata":{"labels":{"x":"y"}}}',
      headers: ['content-type', 'application/merge-patch+json'],
    })
    expect(patched.status, patched.text).to.equal(200)
    const { metadata } = requireWhole(patched.json())
    const updated = await tenant.http.request('PUT', `${path}/a`, {
      body: textOf('a', '"color":"red",').replace('"name":', `"resourceVersion":"${metadata.resourceVersion}","name":`),
      headers: ['content-type', 'application/json'],
    })
    expect(updated.status, updated.text).to.equal(200)
    const after = requireWhole(updated.json())
    await instance.process.kill()
    await instance.process.start()
    expect(requireWhole(await get(`${path}/a`))).to.deep.equal(after)
  })
})
