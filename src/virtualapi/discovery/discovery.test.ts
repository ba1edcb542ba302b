import { expect } from 'chai'
import { gunzipSync } from 'node:zlib'
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { builtInResources } from '#virtualapi/kinds/resources/builtin-resources.ts'
import { compareVersions } from '#apimachinery/meta/index.ts'
import type { ResourceInfo } from '#virtualapi/kinds/resources/resource-info.ts'
import {
  aggregatedContentTypes,
  aggregatedFormat,
  aggregatedDiscovery,
  apiGroup,
  apiGroupList,
  apiResourceList,
  discoveryDocument,
  matchesEtag,
  servedGroups,
  versionInfo,
} from './index.ts'

const verbs = ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch']
const widget = (version: string): ResourceInfo => ({
  group: 'example.dev',
  version,
  resource: 'widgets',
  singular: 'widget',
  kind: 'Widget',
  namespaced: true,
  verbs,
  shortNames: ['wd'],
  categories: ['all'],
  subresources: [
    { name: 'status', group: 'example.dev', version, kind: 'Widget', verbs: ['get', 'patch', 'update'] },
    { name: 'scale', group: 'autoscaling', version: 'v1', kind: 'Scale', verbs: ['get', 'patch', 'update'] },
  ],
  builtIn: false,
})
const infos = [...builtInResources(), widget('v1alpha1'), widget('v2'), widget('v1')]

describe('groups in discovery', () => {
  it('are the built-in ones by priority, then custom ones by name', () => {
    const other = { ...widget('v1'), group: 'alpha.dev' }
    const names = servedGroups([...infos, other]).map(({ group }) => group)
    expect(names.slice(0, 4)).to.deep.equal(['', 'apiregistration.k8s.io', 'apps', 'events.k8s.io'])
    expect(names.slice(-2)).to.deep.equal(['alpha.dev', 'example.dev'])
  })

  it('have the preferred version first', () => {
    const group = apiGroup(infos, 'example.dev')
    expect(group?.versions.map(({ version }) => version)).to.deep.equal(['v2', 'v1', 'v1alpha1'])
    expect(group?.preferredVersion.groupVersion).to.equal('example.dev/v2')
    expect(apiGroup(infos, 'autoscaling')?.preferredVersion.version).to.equal('v2')
  })

  it('are absent if nothing serves them', () => {
    expect(apiGroup(infos, 'nope.dev')).to.equal(undefined)
    expect(apiGroup(infos, '')).to.equal(undefined)
    expect(apiResourceList(infos, { group: 'apps', version: 'v9' })).to.equal(undefined)
  })

  const order = ['v10', 'v2', 'v1', 'v11beta2', 'v10beta3', 'v3beta1', 'v12alpha1', 'v11alpha2', 'foo1', 'foo10']
  it('sort their versions as Kubernetes does', () => {
    expect(order.toReversed().sort(compareVersions)).to.deep.equal(order)
  })
})

describe('legacy discovery', () => {
  it('lists a resource and its subresources', () => {
    const list = apiResourceList(infos, { group: 'apps', version: 'v1' }) as { resources: { name: string }[] }
    expect(list).to.include({ kind: 'APIResourceList', apiVersion: 'v1', groupVersion: 'apps/v1' })
    expect(list.resources.find(({ name }) => name === 'deployments/scale')).to.deep.equal({
      name: 'deployments/scale',
      singularName: '',
      namespaced: true,
      group: 'autoscaling',
      version: 'v1',
      kind: 'Scale',
      verbs: ['get', 'patch', 'update'],
    })
    expect(list.resources.find(({ name }) => name === 'deployments')).to.include({
      singularName: 'deployment',
      storageVersionHash: '8aSe+NMegvE=',
    })
  })

  it('has no core group among the groups', () => {
    const { groups } = apiGroupList(infos) as { groups: { name: string }[] }
    expect(groups.map(({ name }) => name)).to.not.include('')
    expect(groups).to.have.length(21)
  })

  it('orders groups of definitions by the first names of their APIServices, as kube-aggregator does', () => {
    const [some] = infos
    const custom = (group: string, ...versions: string[]) =>
      versions.map((version) => ({ ...some!, group, version, builtIn: false }))
    const all = [
      ...builtInResources(),
      ...custom('a.example.com', 'v1beta1'),
      ...custom('b.example.com', 'v1alpha1', 'v2'),
      ...custom('d.example.com', 'v1'),
      ...custom('c.example.com', 'v1', 'v1beta1'),
    ]
    const { groups } = apiGroupList(all) as { groups: { name: string; versions: { version: string }[] }[] }
    expect(groups.slice(-4).map(({ name }) => name)).to.deep.equal([
      ...['c.example.com', 'd.example.com', 'b.example.com', 'a.example.com'],
    ])
    expect(groups.at(-2)?.versions.map(({ version }) => version)).to.deep.equal(['v2', 'v1alpha1'])
  })
})

describe('aggregated discovery', () => {
  for (const [accept, wanted] of [
    [aggregatedContentTypes.json, 'json'],
    [`${aggregatedContentTypes.json},application/json`, 'json'],
    ['application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io;profile=nopeer', 'json'],
    ['application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList', undefined],
    ['application/json, ' + aggregatedContentTypes.json, 'json'],
    [`${aggregatedContentTypes.protobuf},${aggregatedContentTypes.json}`, 'protobuf'],
    [`${aggregatedContentTypes.json},${aggregatedContentTypes.protobuf}`, 'json'],
    ['application/json', undefined],
    ['*/*', undefined],
    [undefined, undefined],
  ] as const)
    it(`answers ${wanted ?? 'another form'} to Accept: ${accept ?? 'none'}`, () =>
      expect(aggregatedFormat(accept)).to.equal(wanted))

  it('leaves the group of built-in kinds empty and sets that of custom ones', () => {
    const { items } = aggregatedDiscovery(infos, 'groups') as {
      items: { metadata: { name: string }; versions: { resources: JsonObject[] }[] }[]
    }
    const kindOf = (group: string): unknown =>
      items.find(({ metadata }) => metadata.name === group)?.versions[0]?.resources[0]?.['responseKind']
    expect(kindOf('apps')).to.deep.equal({ group: '', version: '', kind: 'ControllerRevision' })
    expect(kindOf('example.dev')).to.deep.equal({ group: 'example.dev', version: 'v2', kind: 'Widget' })
  })

  it('has the core group in a document of its own', () => {
    const { items } = aggregatedDiscovery(infos, 'core') as { items: { metadata: unknown }[] }
    expect(items.map(({ metadata }) => metadata)).to.deep.equal([{}])
  })
})

describe('discovery documents', () => {
  it('have an ETag that follows their content', () => {
    const one = discoveryDocument({ a: 1 })
    expect(one.etag).to.match(/^"[0-9A-F]{128}"$/)
    expect(discoveryDocument({ a: 1 }).etag).to.equal(one.etag)
    expect(discoveryDocument({ a: 2 }).etag).to.not.equal(one.etag)
    expect(matchesEtag(`"x", W/${one.etag}`, one.etag)).to.equal(true)
    expect(matchesEtag('"x"', one.etag)).to.equal(false)
    expect(matchesEtag(undefined, one.etag)).to.equal(false)
  })

  it('have a version that semantic-version parsers accept', () => {
    const { gitVersion, major, minor } = versionInfo({ programVersion: '0.1.0' })
    expect({ gitVersion, major, minor }).to.deep.equal({ gitVersion: 'v1.34.3+kcp-0.1.0', major: '1', minor: '34' })
  })
})

describe('gzip of documents', () => {
  it('unpacks to the bytes of the document', async () => {
    const { encodeOpenApiDocument } = await import('./index.ts')
    const document = encodeOpenApiDocument({ a: 'ä' })
    expect(gunzipSync(await document.gzip()).equals(document.json())).to.equal(true)
  })
})
