// `kcp crd check` against the stored objects of logical clusters: it counts what the real update breaks.
import { expect } from 'chai'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runKcp } from '#test/support/index.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

const definition = (properties: object, more: object = {}): object => ({
  ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
  metadata: { name: 'widgets.example.com' },
  spec: {
    ...{ group: 'example.com', scope: 'Namespaced', names: { plural: 'widgets', kind: 'Widget' } },
    versions: [
      {
        ...{ name: 'v1', served: true, storage: true },
        schema: {
          openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', properties, ...more } } },
        },
      },
    ],
  },
})

describe('kcp crd check', function () {
  this.timeout(60_000)
  const stack = new AsyncDisposableStack()
  const dir = mkdtempSync(join(tmpdir(), 'kcp-crd-check-'))
  const fileOf = (name: string, content: object): string => {
    const file = join(dir, `${name}.yaml`)
    writeFileSync(file, JSON.stringify(content))
    return file
  }
  const oldFile = fileOf('before', definition({ colour: { type: 'string' }, size: { type: 'integer' } }))
  const newFile = fileOf(
    'after',
    definition(
      { size: { type: 'integer', maximum: 5 } },
      { 'x-kubernetes-validations': [{ rule: 'self.size != 3', message: 'three is taken' }] },
    ),
  )
  let kcp: KcpInstance
  let tenants: Tenant[]

  before(async () => {
    kcp = stack.use(await startInstance())
    tenants = [await kcp.tenant('acme'), await kcp.tenant('bob')]
    for (const tenant of tenants) {
      await tenant.kubectl(['create', '-f', oldFile])
      await tenant.kubectl(['wait', '--for=condition=Established', 'crd/widgets.example.com', '--timeout=20s'])
    }
    const widget = (name: string, spec: object): object => ({
      ...{ apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name, finalizers: ['example.com/kept'] }, spec },
    })
    const [acme, bob] = tenants as [Tenant, Tenant]
    const inAcme = [widget('well', { size: 1 }), widget('large', { size: 7 }), widget('three', { size: 3 })]
    for (const object of inAcme) await acme.kubectl(['create', '-f', '-'], { input: object })
    await bob.kubectl(['create', '-f', '-'], { input: widget('red', { size: 2, colour: 'red' }) })
  })
  after(async () => {
    await stack.disposeAsync()
    rmSync(dir, { recursive: true, force: true })
  })

  const check = (args: string[]) =>
    runKcp(['crd', 'check', ...args], { expectCode: 'any' }).then(({ code, stdout, stderr }) => ({
      code,
      text: stdout + stderr,
    }))

  it('names the differences of two files', async () => {
    const { code, text } = await check([oldFile, newFile])
    expect(code).to.equal(1)
    expect(text.trimEnd().split('\n')).to.deep.equal([
      'widgets.example.com: 3 incompatible differences',
      'refused  v1 .spec has another rule: self.size != 3',
      'dropped  v1 .spec.colour does not exist any more',
      'refused  v1 .spec.size must have at most 5',
    ])
    expect(await check([oldFile, oldFile])).to.deep.equal({
      code: 0,
      text: 'widgets.example.com: every object that the old definition accepts is valid under the new one\n',
    })
  })

  it('counts the stored objects that break, in all logical clusters or in some', async () => {
    const all = await check([oldFile, newFile, '--all-clusters', '--root-dir', kcp.rootDir])
    expect(all.code, all.text).to.equal(1)
    expect(all.text).to.contain('of 4 stored objects 2 would be refused and 1 would lose fields')
    expect(all.text).to.match(/bob default\/red: .*unknown field "spec.colour"/)
    expect(all.text).to.match(/acme default\/three: .*three is taken/)
    const some = await check(['widgets.example.com', newFile, '--clusters', 'bob', '--root-dir', kcp.rootDir])
    expect(some.text).to.contain('of 1 stored objects 0 would be refused and 1 would lose fields')
  })

  it('changes nothing', async () => {
    const { stdout } = await tenants[0]!.kubectl(['get', 'widgets', '-o', 'name'])
    expect(stdout.trimEnd().split('\n')).to.have.length(3)
  })

  it('says what is wrong with its files', async () => {
    const empty = fileOf('empty', { kind: 'List' })
    expect((await check([empty, newFile])).text).to.contain('has 0 CustomResourceDefinitions')
    expect((await check([join(dir, 'none.yaml'), newFile])).text).to.contain('cannot read')
    const { code, text } = await check(['widgets.example.com', newFile])
    expect([code, text.includes('with --clusters NAME')]).to.deep.equal([1, true])
    const bad = fileOf('bad', definition({ size: { type: 'nothing' } }))
    expect((await check([oldFile, bad, '--clusters', 'acme', '--root-dir', kcp.rootDir])).text).to.contain(
      'the new definition is refused',
    )
  })
})
