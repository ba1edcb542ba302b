// The CustomResourceDefinitions of well-known projects, as their users get them, and one object of every kind.
import { expect } from 'chai'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { startInstance, type KcpInstance, type Tenant } from '../integration/kcp-instance.ts'
import { moduleFolders } from './module-files.ts'
import { sampleOf, type Schema } from './sample-object.ts'

interface Definition {
  readonly file: string
  /** It says what no server keeps as it is said (a status, a false that is left out): kubectl patches it every time. */
  readonly neverUnchanged: boolean
  readonly metadata: { readonly name: string }
  readonly spec: {
    readonly group: string
    readonly scope: 'Namespaced' | 'Cluster'
    readonly names: { readonly kind: string; readonly plural: string }
    readonly versions: readonly {
      readonly name: string
      readonly storage: boolean
      readonly schema: { readonly openAPIV3Schema: Schema }
    }[]
  }
}

const projects = [
  { title: 'cert-manager', folders: [['github.com/cert-manager/cert-manager', 'deploy/crds']], count: 6 },
  {
    title: 'prometheus-operator',
    folders: [['github.com/prometheus-operator/prometheus-operator', 'example/prometheus-operator-crd']],
    count: 10,
  },
  { title: 'Argo CD', folders: [['github.com/argoproj/argo-cd/v3', 'manifests/crds']], count: 3 },
  { title: 'Argo Rollouts', folders: [['github.com/argoproj/argo-rollouts', 'manifests/crds']], count: 5 },
  {
    title: 'Flux',
    folders: [
      ['github.com/fluxcd/source-controller', 'config/crd/bases'],
      ['github.com/fluxcd/kustomize-controller', 'config/crd/bases'],
    ],
    count: 7,
  },
  {
    title: "Crossplane's provider-kubernetes",
    folders: [['github.com/crossplane-contrib/provider-kubernetes', 'package/crds']],
    count: 9,
  },
  { title: 'Gateway API', folders: [['sigs.k8s.io/gateway-api', 'config/crd/standard']], count: 6 },
] as const

describe('custom resources of well-known projects', function () {
  this.timeout(120_000)
  let kcp: KcpInstance
  let acme: Tenant
  let modules: ReadonlyMap<string, string>
  const run = async (...args: string[]): Promise<string> => (await acme.kubectl(args)).stdout

  before(async function () {
    this.timeout(15 * 60_000) // the first download
    modules = await moduleFolders()
    kcp = await startInstance()
    acme = await kcp.tenant('acme')
  })
  after(() => kcp[Symbol.asyncDispose]())

  for (const { title, folders, count } of projects)
    describe(title, () => {
      let definitions: readonly Definition[]
      before(() => {
        definitions = folders.flatMap(([module, folder]) => definitionsIn(join(modules.get(module)!, folder)))
        expect(definitions).to.have.length(count)
      })

      it('are established, by apply where last-applied has room for them, else by create and replace', async () => {
        for (const { file, metadata, neverUnchanged } of definitions) {
          const applied = await acme.kubectl(['apply', '-f', file], { expectCode: 'any' })
          if (applied.code === 0) {
            const before = await run('get', 'crd', metadata.name, '-o', 'jsonpath={.metadata.resourceVersion}')
            const again = neverUnchanged ? 'configured' : 'unchanged'
            expect(await run('apply', '-f', file)).to.match(new RegExp(`/${metadata.name} ${again}\n$`))
            const after = await run('get', 'crd', metadata.name, '-o', 'jsonpath={.metadata.resourceVersion}')
            expect(after, metadata.name).to.equal(before)
            continue
          }
          expect(applied.stderr).to.include('metadata.annotations: Too long: may not be more than 262144 bytes')
          await run('create', '-f', file)
          await run('replace', '-f', file)
        }
        const names = definitions.map(({ metadata }) => `crd/${metadata.name}`)
        await run('wait', '--for=condition=Established', '--timeout=20s', ...names)
      })

      it('have objects that are created, shown, explained, patched and deleted', async () => {
        for (const definition of definitions) await live(definition)
      })

      it('go, and their objects with them', async () => {
        const names = definitions.map(({ metadata }) => metadata.name)
        await run('delete', 'crd', '--timeout=30s', ...names)
        const { group } = definitions[0]!.spec
        expect(await run('api-resources', '--cached=false', `--api-group=${group}`, '-o', 'name')).to.equal('')
      })
    })

  async function live(definition: Definition): Promise<void> {
    const { group, names, versions } = definition.spec
    const version = versions.find(({ storage }) => storage)!
    const resource = `${names.plural}.${version.name}.${group}`
    const explained = await run('explain', names.plural, `--api-version=${group}/${version.name}`)
    expect(explained)
      .to.match(new RegExp(`KIND: +${names.kind}\n`))
      .and.to.include('metadata')
    const sample = sampleOf(version.schema.openAPIV3Schema) as object
    const input = {
      ...sample,
      apiVersion: `${group}/${version.name}`,
      kind: names.kind,
      metadata: { name: 'sample' },
    }
    const created = await acme.kubectl(['create', '-f', '-'], { input, expectCode: 'any' })
    expect(created.stdout, `${names.kind}: ${created.stderr}`).to.match(/ created\n$/)
    expect(await run('get', resource, '-o', 'wide')).to.match(/^NAME .*\nsample /)
    const patch = '{"metadata":{"labels":{"patched":"yes"}}}'
    expect(await run('patch', resource, 'sample', '--type=merge', '-p', patch)).to.match(/ patched\n$/)
    expect(await run('get', resource, '-l', 'patched=yes', '-o', 'name')).to.equal(
      `${names.kind.toLowerCase()}.${group}/sample\n`,
    )
    expect(await run('describe', resource, 'sample')).to.match(/^Name: +sample\n/)
    expect(await run('delete', resource, 'sample')).to.match(/ deleted/)
    expect(await run('get', resource, '-o', 'name')).to.equal('')
    await acme.kubectl(['create', '-f', '-'], { input }) // for the end of its definition
  }
})

function definitionsIn(folder: string): Definition[] {
  const files = readdirSync(folder).filter((name) => name.endsWith('.yaml') && name !== 'kustomization.yaml')
  return files.sort().map((name) => {
    const file = join(folder, name)
    const definition = parse(readFileSync(file, 'utf8')) as Omit<Definition, 'file' | 'neverUnchanged'> & {
      status?: unknown
    }
    const neverUnchanged = definition.status !== undefined || 'preserveUnknownFields' in definition.spec
    return { ...definition, file, neverUnchanged }
  })
}
