// The published CustomResourceDefinitions of well-known projects, and one object of every kind, in two logical clusters
// at once; in the second one, one definition of each project has another schema.
import { expect } from 'chai'
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse, stringify } from 'yaml'
import { isLongRun } from '#test/support/index.ts'
import { startInstance, type Tenant } from '#test/integration/kcp-instance.ts'
import { live, writeEditor, writeSet, type Manifest } from './manifest-life.ts'
import { moduleFolders } from './module-files.ts'
import { sampleOf, type Schema } from './sample-object.ts'

interface Definition {
  readonly file: string
  /** The manifest contains values that no server keeps (a status, an omitted false): kubectl patches it every time. */
  readonly neverUnchanged: boolean
  readonly metadata: { readonly name: string }
  readonly spec: {
    readonly conversion?: { readonly strategy: string }
    readonly group: string
    readonly scope: 'Namespaced' | 'Cluster'
    readonly names: { readonly kind: string; readonly plural: string }
    readonly versions: readonly {
      readonly name: string
      readonly storage: boolean
      readonly selectableFields?: readonly object[]
      readonly schema: { readonly openAPIV3Schema: Schema }
    }[]
  }
}

interface Project {
  readonly title: string
  /** Modules and folders in them. */
  readonly folders: readonly (readonly [module: string, folder: string])[]
  /** How many definitions. */
  readonly count: number
  /** Adds no behaviour to what the others show. */
  readonly isMore?: boolean
}

const everyProject: readonly Project[] = [
  { title: 'cert-manager', folders: [['github.com/cert-manager/cert-manager', 'deploy/crds']], count: 6 },
  {
    title: 'prometheus-operator',
    folders: [['github.com/prometheus-operator/prometheus-operator', 'example/prometheus-operator-crd']],
    count: 10,
    isMore: true,
  },
  { title: 'Argo CD', folders: [['github.com/argoproj/argo-cd/v3', 'manifests/crds']], count: 3 },
  {
    title: 'Argo Rollouts',
    folders: [['github.com/argoproj/argo-rollouts', 'manifests/crds']],
    count: 5,
    isMore: true,
  },
  {
    title: 'Flux',
    folders: [
      ['github.com/fluxcd/source-controller', 'config/crd/bases'],
      ['github.com/fluxcd/kustomize-controller', 'config/crd/bases'],
    ],
    count: 7,
    isMore: true,
  },
  {
    title: "Crossplane's provider-kubernetes",
    folders: [['github.com/crossplane-contrib/provider-kubernetes', 'package/crds']],
    count: 9,
    isMore: true,
  },
  { title: 'Gateway API', folders: [['sigs.k8s.io/gateway-api', 'config/crd/standard']], count: 6 },
]
const projects = everyProject.filter(({ isMore = false }) => isLongRun || !isMore)

/** In the second logical cluster, the schema of the first definition of every project, in all versions. */
const otherSchema = {
  type: 'object',
  required: ['spec'],
  properties: {
    spec: {
      type: 'object',
      required: ['other'],
      properties: { other: { type: 'integer', description: 'Only umbrella has this.' } },
    },
  },
}

describe('custom resources of well-known projects', function () {
  this.timeout(180_000)
  const stack = new AsyncDisposableStack()
  let dir: string
  let editor: string
  let acme: Tenant
  let umbrella: Tenant
  let modules: ReadonlyMap<string, string>

  before(async function () {
    this.timeout(15 * 60_000) // the first run downloads
    dir = mkdtempSync(join(tmpdir(), 'kcp-definitions-'))
    stack.defer(() => rmSync(dir, { recursive: true, force: true }))
    editor = writeEditor(dir)
    modules = await moduleFolders()
    const kcp = stack.use(await startInstance())
    acme = await kcp.tenant('acme')
    umbrella = await kcp.tenant('umbrella')
  })
  after(() => stack.disposeAsync())

  for (const { title, folders, count } of projects)
    describe(title, () => {
      let definitions: readonly Definition[]
      let inBoth: readonly (readonly [Tenant, readonly Definition[]])[]
      before(() => {
        definitions = folders.flatMap(([module, folder]) => definitionsIn(join(modules.get(module)!, folder), dir))
        expect(definitions).to.have.length(count)
        const [first, ...others] = definitions
        inBoth = [
          [acme, definitions],
          [umbrella, [withOtherSchema(first!, dir), ...others]],
        ]
      })

      it('are established by apply if last-applied fits, else by create and replace', () =>
        Promise.all(inBoth.map(([tenant, own]) => establish(tenant, own))))

      it('have objects with the usual life cycle', () =>
        Promise.all(
          inBoth.map(async ([tenant, own]) => {
            const set = writeSet(
              dir,
              `${title} in ${tenant.name}`,
              own.map((definition) => stringify(sample(definition))),
            )
            const transcript = await live(set, { kubeconfig: tenant.kubeconfig, hasControllers: true }, { editor })
            for (const { code, said } of transcript) expect(code, said).to.equal(0)
            await tenant.kubectl(['create', '-f', set.file]) // for the deletion of their definitions below
          }),
        ))

      it('are explained', async () => {
        for (const { spec } of definitions) {
          const { name } = storageVersion(spec)
          const args = ['explain', spec.names.plural, `--api-version=${spec.group}/${name}`]
          const { stdout } = await acme.kubectl(args)
          expect(stdout).to.match(new RegExp(`KIND: +${spec.names.kind}\n`))
          expect(stdout).to.include('metadata')
        }
      })

      it('have the schema of their own logical cluster only', async () => {
        const [first] = definitions
        const [stranger] = inBoth[1]![1]
        const { group, names } = first!.spec
        const { name: version } = storageVersion(first!.spec)
        const ask = async ({ kubectl }: Tenant, field: string) =>
          kubectl(['explain', `${names.plural}.${field}`, `--api-version=${group}/${version}`], { expectCode: 'any' })
        expect((await ask(umbrella, 'spec.other')).stdout).to.include('Only umbrella has this.')
        expect((await ask(acme, 'spec.other')).stdout).to.not.include('Only umbrella has this.')
        const create = ({ kubectl }: Tenant, { metadata, ...object }: Manifest) =>
          kubectl(['create', '-f', '-'], {
            input: { ...object, metadata: { ...metadata, name: 'second' } },
            expectCode: 'any',
          })
        const refused = /unknown field "|: Required value|: Unsupported value/
        expect((await create(umbrella, sample(first!))).stderr).to.match(refused)
        expect((await create(acme, sample(stranger!))).stderr).to.match(refused)
        expect((await create(umbrella, sample(stranger!))).stdout).to.match(/ created\n$/)
        const resource = `${names.plural}.${version}.${group}`
        expect((await acme.kubectl(['get', resource, '-A', '-o', 'name'])).stdout.trim().split('\n')).to.have.length(1)
        expect(
          (await umbrella.kubectl(['get', resource, '-A', '-o', 'name'])).stdout.trim().split('\n'),
        ).to.have.length(2)
      })

      it('are deleted together with their objects', async () => {
        const names = definitions.map(({ metadata }) => metadata.name)
        const groups = [...new Set(definitions.map(({ spec }) => spec.group))]
        const served = async (tenant: Tenant, group: string): Promise<string> =>
          (await tenant.kubectl(['api-resources', '--cached=false', `--api-group=${group}`, '-o', 'name'])).stdout
        await acme.kubectl(['delete', 'crd', '--timeout=60s', ...names])
        for (const group of groups) {
          expect(await served(acme, group)).to.equal('')
          expect(await served(umbrella, group)).to.not.equal('')
        }
        await umbrella.kubectl(['delete', 'crd', '--timeout=60s', ...names])
      })
    })
})

async function establish({ kubectl }: Tenant, definitions: readonly Definition[]): Promise<void> {
  // kubectl stores the applied object in an annotation; larger definitions do not fit, which it reports.
  const isLarge = ({ file }: Definition): boolean => JSON.stringify(parse(readFileSync(file, 'utf8'))).length > 262_000
  const files = (of: readonly Definition[]): string[] => of.flatMap(({ file }) => ['-f', file])
  const namesOf = (of: readonly Definition[]): string[] => of.map(({ metadata }) => `crd/${metadata.name}`)
  const large = definitions.filter(isLarge)
  const small = definitions.filter((definition) => !isLarge(definition))
  const run = async (...args: string[]): Promise<string> => (await kubectl(args)).stdout
  if (large.length > 0) {
    const { stderr } = await kubectl(['apply', ...files(large)], { expectCode: 1 })
    expect(stderr.match(/metadata.annotations: Too long: may not be more than 262144 bytes/g)).to.have.length(
      large.length,
    )
    await run('create', ...files(large))
    // Their conditions are written a moment later: a replacement may conflict with that.
    await run('wait', '--for=condition=Established', '--timeout=20s', ...namesOf(large))
    await run('replace', ...files(large))
  }
  if (small.length > 0) {
    await run('apply', ...files(small))
    await run('wait', '--for=condition=Established', '--timeout=20s', ...namesOf(definitions))
    const versions = ['get', ...files(small), '-o', 'jsonpath={..metadata.resourceVersion}']
    const before = await run(...versions)
    const again = await run('apply', ...files(small))
    for (const { metadata, neverUnchanged } of small)
      expect(again).to.include(`/${metadata.name} ${neverUnchanged ? 'configured' : 'unchanged'}\n`)
    expect(await run(...versions)).to.equal(before)
    const settled = small.filter(({ neverUnchanged }) => !neverUnchanged)
    if (settled.length > 0) expect(await run('diff', ...files(settled))).to.equal('')
  }
}

type Spec = Definition['spec']

const storageVersion = ({ versions }: Spec): Spec['versions'][0] => versions.find(({ storage }) => storage)!

/** The smallest valid object of a kind. */
function sample({ spec }: Definition): Manifest {
  const version = storageVersion(spec)
  const smallest = sampleOf(version.schema.openAPIV3Schema) as object
  return {
    ...(completions[spec.names.kind]?.(smallest) ?? smallest),
    apiVersion: `${spec.group}/${version.name}`,
    kind: spec.names.kind,
    metadata: { name: 'sample' },
  }
}

/** Adds what the rules of a kind (x-kubernetes-validations) ask for beyond its required fields. */
const completions: Readonly<Record<string, (smallest: { spec?: { validation?: object } }) => object>> = {
  BackendTLSPolicy: (smallest) => {
    const { spec } = smallest
    if (spec?.validation === undefined) return smallest // The other schema of the other logical cluster.
    return { spec: { ...spec, validation: { ...spec.validation, wellKnownCACertificates: 'System' } } }
  },
}

function definitionsIn(folder: string, dir: string): Definition[] {
  const files = readdirSync(folder).filter((name) => name.endsWith('.yaml') && name !== 'kustomization.yaml')
  return files.sort().map((name) => {
    const file = join(folder, name)
    const definition = parse(readFileSync(file, 'utf8')) as Omit<Definition, 'file' | 'neverUnchanged'> & {
      status?: unknown
    }
    const neverUnchanged = definition.status !== undefined || 'preserveUnknownFields' in definition.spec
    if (definition.spec.conversion?.strategy !== 'Webhook') return { ...definition, file, neverUnchanged }
    // Normally the installer sets the address of this webhook (as Crossplane's package manager does): no object is
    // converted here.
    const clientConfig = { service: { name: 'converter', namespace: 'default', path: '/convert', port: 443 } }
    const webhook = { clientConfig, conversionReviewVersions: ['v1'] }
    const spec = { ...definition.spec, conversion: { strategy: 'Webhook', webhook } }
    return { ...write(dir, `converted-${name}`, { ...definition, spec }), neverUnchanged }
  })
}

/** The definition with the schema of the second logical cluster. */
function withOtherSchema({ file: _, neverUnchanged, ...definition }: Definition, dir: string): Definition {
  // The selectable fields are those of the replaced schema.
  const versions = definition.spec.versions.map(({ selectableFields: _fields, ...version }) => ({
    ...version,
    schema: { openAPIV3Schema: otherSchema },
  }))
  const other = { ...definition, spec: { ...definition.spec, versions } }
  return { ...write(dir, `other-${definition.metadata.name}.yaml`, other), neverUnchanged }
}

function write<T extends object>(dir: string, name: string, definition: T): T & { file: string } {
  const file = join(dir, name)
  writeFileSync(file, stringify(definition))
  return { ...definition, file }
}
