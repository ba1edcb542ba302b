import { expect } from 'chai'
import { isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { builtInResources } from '#virtualapi/kinds/resources/builtin-resources.ts'
import {
  builtInOpenApi,
  encodeOpenApiInTurns,
  openApiFromTables,
  openApiIndex,
  openApiKey,
  openApiV3ForCustomResources,
} from './index.ts'

type Operation = JsonObject & { parameters?: { name: string }[] }
type Document = {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, JsonObject> }
}

const gvs = [...new Map(builtInResources().map((info) => [openApiKey(info), info])).values()]

/** All references in a document. */
function references(value: JsonValue): string[] {
  if (Array.isArray(value)) return value.flatMap(references)
  if (!isJsonObject(value)) return []
  const own = typeof value['$ref'] === 'string' ? [value['$ref']] : []
  return [...own, ...Object.values(value).flatMap(references)]
}

/** The query parameters of the PATCH of a kind, looked up as kubectl does. */
function patchParameters({ paths }: Document, kind: string): string[] | undefined {
  for (const operations of Object.values(paths)) {
    const patch = operations['patch']
    const gvk = patch?.['x-kubernetes-group-version-kind']
    if (isJsonObject(gvk) && gvk['kind'] === kind) return patch?.parameters?.map(({ name }) => name)
  }
  return undefined
}

describe('OpenAPI documents generated from the tables', () => {
  for (const gv of gvs) {
    const document = openApiFromTables(gv) as unknown as Document
    it(`have all definitions they refer to: ${openApiKey(gv)}`, () => {
      const names = new Set(Object.keys(document.components.schemas).map((name) => `#/components/schemas/${name}`))
      expect(references(document as unknown as JsonValue).filter((name) => !names.has(name))).to.deep.equal([])
    })
    it(`have the query parameters of PATCH: ${openApiKey(gv)}`, () => {
      for (const { group, version, kind, verbs } of builtInResources())
        if (group === gv.group && version === gv.version && verbs.includes('patch'))
          expect(patchParameters(document, kind), kind).to.include.members(['dryRun', 'fieldValidation', 'force'])
    })
  }

  it('have merge keys and patch strategies', () => {
    const { components } = openApiFromTables({ group: '', version: 'v1' }) as unknown as Document
    const podSpec = components.schemas['io.k8s.api.core.v1.PodSpec']?.['properties'] as Record<string, JsonObject>
    expect(podSpec['containers']).to.include({
      'x-kubernetes-patch-merge-key': 'name',
      'x-kubernetes-patch-strategy': 'merge',
      'x-kubernetes-list-type': 'map',
    })
    expect(podSpec['volumes']).to.include({ 'x-kubernetes-patch-strategy': 'merge,retainKeys' })
    expect(components.schemas['io.k8s.api.core.v1.Pod']?.['x-kubernetes-group-version-kind']).to.deep.equal([
      { group: '', version: 'v1', kind: 'Pod' },
    ])
  })
})

describe('allowed values in documents', () => {
  it('are in fields and in the items of lists', () => {
    const { components } = openApiFromTables({ group: '', version: 'v1' }) as unknown as Document
    const claim = components.schemas['io.k8s.api.core.v1.PersistentVolumeClaimSpec']?.['properties']
    expect(claim).to.have.nested.property('volumeMode.enum').that.deep.equals(['Block', 'Filesystem'])
    expect(claim).to.have.nested.property('accessModes.items.enum').that.includes('ReadWriteOncePod')
  })
})

describe('the OpenAPI index', () => {
  const documents = builtInOpenApi()
  it('has every built-in group version', () => {
    expect([...documents.keys()].sort()).to.deep.equal(gvs.map(openApiKey).sort())
  })
  it('has URLs below the logical cluster, with the hash', () => {
    const { paths } = openApiIndex(documents, '/clusters/acme') as {
      paths: Record<string, { serverRelativeURL: string }>
    }
    expect(paths['apis/apps/v1']?.serverRelativeURL).to.match(
      /^\/clusters\/acme\/openapi\/v3\/apis\/apps\/v1\?hash=[0-9A-F]{128}$/,
    )
  })
  it('refers to documents that are JSON', () => {
    const document = JSON.parse(String(documents.get('apis/apps/v1')?.json())) as Document
    expect(patchParameters(document, 'Deployment')).to.include('fieldValidation')
  })
})

describe('OpenAPI documents of custom resources', () => {
  const info = {
    ...gvs[0]!,
    group: 'example.dev',
    version: 'v1',
    resource: 'widgets',
    kind: 'Widget',
    namespaced: true,
    verbs: ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch'],
    subresources: [
      { name: 'status', group: 'example.dev', version: 'v1', kind: 'Widget', verbs: ['get', 'patch', 'update'] },
      { name: 'scale', group: 'autoscaling', version: 'v1', kind: 'Scale', verbs: ['get', 'patch', 'update'] },
    ],
    builtIn: false,
  }
  const schema: JsonObject = {
    type: 'object',
    description: 'A widget.',
    properties: { spec: { type: 'object', properties: { port: { 'x-kubernetes-int-or-string': true } } } },
  }
  const document = openApiV3ForCustomResources(info, [{ info, openAPIV3Schema: schema }]) as unknown as Document

  it('have the same content if they are made of one resource after the other', async () => {
    const resources = ['gadgets', 'widgets'].map((resource) => {
      const kind = resource === 'gadgets' ? 'Gadget' : 'Widget'
      return { info: { ...info, resource, kind }, openAPIV3Schema: schema }
    })
    for (const some of [resources, resources.slice(1), []]) {
      let turns = 0
      const bytes = await encodeOpenApiInTurns(info, some, async () => {
        turns++
      })
      expect(JSON.parse(bytes.toString())).to.deep.equal(openApiV3ForCustomResources(info, some.toReversed()))
      expect(turns).to.equal(some.length)
    }
  })

  it('have the paths that they have in kube-apiserver', () => {
    const base = '/apis/example.dev/v1/namespaces/{namespace}/widgets'
    expect(Object.keys(document.paths).sort()).to.deep.equal(
      [base, `${base}/{name}`, `${base}/{name}/scale`, `${base}/{name}/status`, '/apis/example.dev/v1/widgets'].sort(),
    )
    expect(document.paths[`${base}/{name}`]?.['patch']?.['x-kubernetes-action']).to.equal('patch')
  })
  it('have the query parameters of PATCH, but no strategic merge patch', () => {
    expect(patchParameters(document, 'Widget')).to.deep.equal(['dryRun', 'fieldManager', 'fieldValidation', 'force'])
    expect(JSON.stringify(document)).to.not.include('strategic')
  })
  it('have all definitions they refer to', () => {
    const names = new Set(Object.keys(document.components.schemas).map((name) => `#/components/schemas/${name}`))
    expect(references(document as unknown as JsonValue).filter((name) => !names.has(name))).to.deep.equal([])
  })
  it('have the schema with its descriptions and the kind', () => {
    const widget = document.components.schemas['dev.example.v1.Widget']
    expect(widget).to.deep.include({
      description: 'A widget.',
      'x-kubernetes-group-version-kind': [{ group: 'example.dev', version: 'v1', kind: 'Widget' }],
    })
    const { spec, metadata } = widget?.['properties'] as Record<string, JsonObject>
    expect(spec?.['properties']).to.deep.equal({
      port: { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
    })
    expect(metadata).to.have.property('allOf')
    expect(document.components.schemas).to.have.property('dev.example.v1.WidgetList')
  })
})
