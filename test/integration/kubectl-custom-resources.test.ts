import { expect } from 'chai'
import { at } from './json.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

/** The CRD has the same name in every logical cluster; its content differs. */
const crd = (properties: object, more: object = {}): object => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.shop.test' },
  spec: {
    group: 'shop.test',
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget', shortNames: ['wd'], categories: ['all'] },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {}, scale: { specReplicasPath: '.spec.size', statusReplicasPath: '.status.size' } },
        additionalPrinterColumns: [
          { name: 'Size', type: 'integer', jsonPath: '.spec.size' },
          { name: 'Phase', type: 'string', jsonPath: '.status.phase', priority: 0 },
        ],
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: { type: 'object', properties },
              status: { type: 'object', properties: { phase: { type: 'string' }, size: { type: 'integer' } } },
            },
          },
        },
        ...more,
      },
    ],
  },
})

const widget = (spec: object, name = 'w'): object => ({
  apiVersion: 'shop.test/v1',
  kind: 'Widget',
  metadata: { name },
  spec,
})

describe('custom resources in a logical cluster', () => {
  let kcp: KcpInstance
  let acme: Tenant
  let bob: Tenant
  const get = async (path: string): Promise<unknown> =>
    at(JSON.parse((await acme.kubectl(['get', 'widget', 'w', '-o', 'json'])).stdout), path)
  const refused = async (tenant: Tenant, args: readonly string[], input?: object): Promise<string> => {
    const result = await tenant.kubectl(args, { expectCode: 'any', ...(input === undefined ? {} : { input }) })
    expect(result.code, result.stdout).to.equal(1)
    return result.stderr
  }

  before(async () => {
    kcp = await startInstance()
    acme = await kcp.tenant('acme')
    bob = await kcp.tenant('bob')
    const acmes = crd({
      size: { type: 'integer', minimum: 1, default: 3, description: 'How large the widget is.' },
      colour: { type: 'string', enum: ['red', 'green'] },
      sides: {
        type: 'array',
        maxItems: 2,
        items: { type: 'object', required: ['id'], properties: { id: { type: 'string' } } },
      },
    })
    await acme.kubectl(['apply', '-f', '-'], { input: acmes })
    await acme.kubectl(['wait', '--for=condition=Established', 'crd/widgets.shop.test', '--timeout=10s'])
    await bob.kubectl(['apply', '-f', '-'], { input: crd({ size: { type: 'string' } }) })
  })
  after(() => kcp[Symbol.asyncDispose]())

  it('are served at once, with short names, categories, explain and printer columns', async () => {
    await acme.kubectl(['apply', '-f', '-'], { input: widget({ colour: 'red' }) })
    expect((await acme.kubectl(['get', 'wd'])).stdout).to.match(/^NAME +SIZE +PHASE\nw +3 +/)
    expect((await acme.kubectl(['get', 'all'])).stdout).to.include('widget.shop.test/w')
    expect((await acme.kubectl(['explain', 'widget.spec.size'])).stdout).to.match(/How large the widget is/)
    expect((await acme.kubectl(['api-resources', '--api-group=shop.test', '--no-headers'])).stdout).to.match(
      /widgets +wd +shop.test\/v1 +true +Widget/,
    )
    expect((await acme.kubectl(['describe', 'widget', 'w'])).stdout).to.match(/Colour: +red/)
  })

  it('are unchanged by a second apply, and diff is empty', async () => {
    const input = widget({ colour: 'red' })
    expect((await acme.kubectl(['apply', '-f', '-'], { input })).stdout).to.equal('widget.shop.test/w unchanged\n')
    expect((await acme.kubectl(['diff', '-f', '-'], { input })).stdout).to.equal('')
  })

  it('are defaulted, pruned and validated by their schema, with the path of each error', async () => {
    expect(await get('spec')).to.deep.equal({ colour: 'red', size: 3 })
    await acme.kubectl(['patch', 'widget', 'w', '--type=merge', '-p', '{"spec":{"unknown":1}}'])
    expect(await get('spec')).to.deep.equal({ colour: 'red', size: 3 })
    for (const [spec, message] of [
      [{ size: 0 }, /spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1/],
      [{ size: 'big' }, /spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"/],
      [{ colour: 'blue' }, /spec.colour: Unsupported value: "blue": supported values: "red", "green"/],
      [{ sides: [{}] }, /spec.sides\[0\].id: Required value/],
      [{ sides: [{ id: 'a' }, { id: 'b' }, { id: 'c' }] }, /spec.sides: Too many: 3: must have at most 2 items/],
    ] as const)
      expect(await refused(acme, ['create', '-f', '-'], widget(spec, 'bad'))).to.match(message)
    expect(await refused(acme, ['create', '--validate=strict', '-f', '-'], widget({ sizze: 1 }, 'bad'))).to.include(
      'unknown field "spec.sizze"',
    )
  })

  it('have separate writes of status and spec, and a generation that counts changes of spec only', async () => {
    await acme.kubectl(['patch', 'widget', 'w', '--type=merge', '-p', '{"status":{"phase":"Ready"},"spec":{"size":4}}'])
    expect(await get('status')).to.equal(undefined)
    const generation = await get('metadata.generation')
    await acme.kubectl([
      'patch',
      'widget',
      'w',
      '--subresource=status',
      '--type=merge',
      '-p',
      '{"status":{"phase":"Ready","size":4},"spec":{"size":9}}',
    ])
    expect(await get('status.phase')).to.equal('Ready')
    expect(await get('spec.size')).to.equal(4)
    expect(await get('metadata.generation')).to.equal(generation)
    expect(
      (await acme.kubectl(['wait', '--for=jsonpath={.status.phase}=Ready', 'widget/w', '--timeout=5s'])).stdout,
    ).to.include('condition met')
  })

  it('scale with kubectl, through the paths of the CRD', async () => {
    await acme.kubectl(['scale', 'widget/w', '--replicas=7'])
    expect(await get('spec.size')).to.equal(7)
  })

  it('accept JSON and merge patches, and refuse strategic ones', async () => {
    await acme.kubectl([
      'patch',
      'widget',
      'w',
      '--type=json',
      '-p',
      '[{"op":"replace","path":"/spec/size","value":5}]',
    ])
    expect(await get('spec.size')).to.equal(5)
    const response = await acme.http.request('PATCH', `${acme.base}/apis/shop.test/v1/namespaces/default/widgets/w`, {
      body: '{"spec":{"size":6}}',
      headers: ['Content-Type', 'application/strategic-merge-patch+json'],
    })
    expect(response.status).to.equal(415)
    expect(response.json()).to.deep.include({ kind: 'Status', reason: 'UnsupportedMediaType' })
  })

  it('of the same name in another logical cluster have their own schema', async () => {
    await bob.kubectl(['apply', '-f', '-'], { input: widget({ size: 'huge' }) })
    expect((await bob.kubectl(['get', 'wd', '-o', 'jsonpath={.items[*].spec.size}'])).stdout).to.equal('huge')
    expect(await refused(bob, ['create', '-f', '-'], widget({ size: 5 }, 'bad'))).to.match(/must be of type string/)
    expect(await get('spec.size')).to.equal(5)
    expect(await refused(kcp.admin, ['get', 'widgets'])).to.include(`the server doesn't have a resource type "widgets"`)
    const all = await kcp.admin.http.request('GET', '/clusters/*/apis/shop.test/v1/widgets')
    const sizes = (all.json()['items'] as object[]).map((item) => at(item, 'spec.size'))
    expect(sizes.map(String).sort()).to.deep.equal(['5', 'huge'])
  })

  it('are not served from an invalid CRD, which is refused with the paths of its errors', async () => {
    const broken = crd({ size: { type: 'wrong' } })
    const text = await refused(acme, ['create', '--validate=false', '-f', '-'], {
      ...broken,
      metadata: { name: 'other.shop.test' },
    })
    expect(text).to.match(/metadata.name: Invalid value: "other.shop.test"/)
    expect(text).to.match(/type: Unsupported value: "wrong"/)
  })

  it('follow a changed schema from the next request on', async () => {
    const wider = crd({ size: { type: 'integer' }, colour: { type: 'string' } })
    await acme.kubectl(['apply', '-f', '-'], { input: wider })
    await acme.kubectl(['patch', 'widget', 'w', '--type=merge', '-p', '{"spec":{"colour":"blue"}}'])
    expect(await get('spec.colour')).to.equal('blue')
  })

  it('are deleted with their CRD, in this logical cluster only', async () => {
    await acme.kubectl(['delete', 'crd', 'widgets.shop.test', '--timeout=20s'])
    expect(await refused(acme, ['get', 'widgets'])).to.match(/could not find the requested resource|resource type/)
    await acme.kubectl(['apply', '-f', '-'], { input: crd({ size: { type: 'integer' } }) })
    await acme.kubectl(['wait', '--for=condition=Established', 'crd/widgets.shop.test', '--timeout=10s'])
    expect((await acme.kubectl(['get', 'widgets', '-o', 'name'])).stdout).to.equal('')
    expect((await bob.kubectl(['get', 'widgets', '-o', 'name'])).stdout).to.equal('widget.shop.test/w\n')
  })
})
