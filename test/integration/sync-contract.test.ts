// Protection of the names that the installation writes on tenants' objects: a tenant's admin can neither forge nor
// remove them. One row for each name that src/crds/sync-contract.ts exports, so that a new one without a row fails.
import { expect } from 'chai'
import * as contract from '#crds/sync-contract.ts'
import type { JsonObject, KubeObject } from '#apimachinery/meta/index.ts'
import { startServedApi, type ServedApi, type ServedTenant } from './served-api.ts'

const configMaps = '/clusters/acme/api/v1/namespaces/default/configmaps'
const gvr = { group: '', version: 'v1', resource: 'configmaps' } as const

type Field = 'annotations' | 'labels' | 'finalizers'
/** Where the name stands on tenants' objects; or why it does not, or why tenants may write it. */
const rows: Readonly<Record<string, { readonly field: Field; readonly name?: string } | { readonly open: string }>> = {
  clustersAnnotation: { open: "tenants' own wish" },
  rebalanceAnnotation: { open: "tenants' own wish" },
  placedOnAnnotation: { field: 'annotations' },
  heldAnnotation: { field: 'annotations' },
  historyAnnotation: { field: 'annotations' },
  formerAccountsAnnotation: { field: 'annotations' },
  memberAnnotation: { field: 'annotations' },
  memberUidAnnotation: { field: 'annotations' },
  volumeAnnotation: { field: 'annotations' },
  movedVolumeAnnotation: { field: 'annotations' },
  volumeLockAnnotation: { field: 'annotations' },
  volumeConsentAnnotation: { open: "tenants' own consent" },
  emptyVolumeConsent: { open: "a value of tenants' own consent" },
  volumeSourceAnnotation: { field: 'annotations' },
  reachableAnnotation: { field: 'annotations' },
  memberLostAnnotation: { field: 'annotations' },
  exportedFromLabel: { field: 'labels' },
  exportedByAnnotation: { field: 'annotations' },
  droppedFieldsAnnotation: { field: 'annotations' },
  heldChangeAnnotation: { field: 'annotations' },
  relatedToAnnotation: { field: 'annotations' },
  adoptedNamespaceAnnotation: { field: 'annotations' },
  adoptedAnnotation: { field: 'annotations' },
  memberNamespaceAnnotation: { field: 'annotations' },
  adoptableLabel: { open: 'on namespaces of members, which their admins write' },
  projectedAnnotation: { field: 'annotations' },
  templateAnnotation: { field: 'annotations' },
  keepUidHeader: { open: 'a header; only the installation is heard (hostile-clients.test.ts)' },
  memberStatusAnnotationPrefix: { field: 'annotations', name: contract.memberStatusAnnotation('east') },
  syncerFinalizerPrefix: { field: 'finalizers', name: contract.syncerFinalizer('east') },
  upstreamFinalizer: { open: 'on copies in members; upstream it is a finalizer like any other' },
  locatorAnnotation: { field: 'annotations' },
  appliedAnnotation: { field: 'annotations' },
  replacedAnnotation: { field: 'annotations' },
  sourceAnnotation: { field: 'annotations' },
  templateChangesAnnotation: { field: 'annotations' },
  namespaceAnnotation: { field: 'annotations' },
  withheldAnnotation: { field: 'annotations' },
  keptAnnotationPrefix: { field: 'annotations', name: `${contract.keptAnnotationPrefix}x` },
  managedLabel: { field: 'labels' },
  servingLabel: { field: 'labels' },
  keptVolumeAnnotation: { open: 'on claims in members, where it keeps a volume' },
  volumeMoveLabel: { open: 'on objects in members; upstream it means nothing' },
  volumeSnapshotLabel: { open: 'on objects in members; upstream it means nothing' },
  syncerFieldManager: { open: 'a field manager: gives no rights' },
  ownAnnotationPrefix: { open: 'a prefix of the names above and of annotations of tenants; stays on its side' },
  clusterLabel: { open: 'on namespaces of members, which only syncers make' },
  namespaceLabelPrefix: { open: 'on namespaces of members, which only syncers make' },
  systemNamespace: { open: 'a namespace of the host and of members; inside a logical cluster an ordinary one' },
  installationKeysName: { open: 'a Secret of the host' },
  memberFinalizer: { open: 'on MemberClusters, which only the installation has' },
  installationAnnotation: { open: 'on MemberClusters, which only the installation has, and in members' },
  kubeSystemUidAnnotation: { open: 'on MemberClusters, which only the installation has' },
}

const marks = Object.entries(rows).flatMap(([exported, row]) =>
  'open' in row ? [] : [{ exported, field: row.field, name: row.name ?? textOf(exported) }],
)

function textOf(exported: string): string {
  return (contract as unknown as Record<string, string>)[exported] ?? ''
}

function metadataWith(field: Field, name: string, value: string): JsonObject {
  return field === 'finalizers' ? { finalizers: [name] } : { [field]: { [name]: value } }
}

function markOf({ metadata }: KubeObject, field: Field, name: string): string | undefined {
  if (field === 'finalizers') return metadata.finalizers?.includes(name) === true ? 'there' : undefined
  return metadata[field]?.[name]
}

describe('what the installation writes on the objects of tenants', function () {
  this.timeout(60_000)
  let served: ServedApi
  let acme: ServedTenant

  before(async () => {
    served = await startServedApi()
    acme = await served.tenant('acme')
  })
  after(() => served[Symbol.asyncDispose]())

  it('has a row here for every name of the contract', () => {
    const names = Object.entries(contract)
      .filter(([, value]) => typeof value === 'string')
      .map(([name]) => name)
    expect(Object.keys(rows).sort()).to.deep.equal(names.sort())
  })

  for (const { exported, field, name } of marks) {
    const object = `mark-${exported.toLowerCase()}`
    const own = () => served.api.client('acme' as never)
    const read = () => own().get<KubeObject>(gvr, { namespace: 'default', name: object }, { signal: served.signal })
    const patch = (metadata: JsonObject) =>
      acme.request('PATCH', `${configMaps}/${object}`, {
        headers: { 'content-type': 'application/merge-patch+json' },
        body: JSON.stringify({ metadata }),
      })

    it(`${name}: a tenant cannot write it, change it or remove it`, async () => {
      const metadata = { name: object, ...metadataWith(field, name, 'forged') }
      const created = await acme.request('POST', configMaps, {
        body: JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata }),
      })
      expect(created.status).to.equal(201)
      expect(created.headers.warning).to.contain(`metadata.${field}: \\"${name}\\" is set by kcp and was ignored`)
      expect(markOf(await read(), field, name), 'on create').to.equal(undefined)
      await patch(metadataWith(field, name, 'forged'))
      expect(markOf(await read(), field, name), 'on update').to.equal(undefined)

      const ours = { metadata: metadataWith(field, name, 'ours') }
      await own().patch(gvr, { namespace: 'default', name: object }, 'merge', ours, { signal: served.signal })
      const set = markOf(await read(), field, name)
      expect(set, 'written by the installation').to.be.a('string')
      await patch(field === 'finalizers' ? { finalizers: null } : { [field]: null })
      await patch(field === 'finalizers' ? { finalizers: ['a.example/b'] } : { [field]: { [name]: 'forged' } })
      expect(markOf(await read(), field, name), 'after a tenant tried to remove it').to.equal(set)
    })
  }

  it('endpoints that came from a member are not changed by a tenant', async () => {
    const slices = { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices' } as const
    const metadata = {
      name: 'web-1',
      namespace: 'default',
      labels: { 'kubernetes.io/service-name': 'web', x: 'y' },
      annotations: { [contract.memberAnnotation]: 'east', [contract.reachableAnnotation]: 'true' },
    }
    const endpoints = [{ addresses: ['10.0.0.1'] }]
    const slice = { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', metadata, addressType: 'IPv4', endpoints }
    await served.api.client('acme' as never).create(slices, slice, { signal: served.signal })
    const path = '/clusters/acme/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/web-1'
    const headers = { 'content-type': 'application/merge-patch+json' }
    for (const change of [
      { endpoints: [{ addresses: ['192.0.2.1'] }] },
      { ports: [{ port: 22 }] },
      { metadata: { labels: { 'kubernetes.io/service-name': 'other' } } },
    ]) {
      const response = await acme.request('PATCH', path, { headers, body: JSON.stringify(change) })
      expect(response.status, JSON.stringify(change)).to.equal(403)
      expect(response.text).to.contain('set by kcp from what runs in a member cluster')
    }
    const labelled = await acme.request('PATCH', path, {
      headers,
      body: JSON.stringify({ metadata: { labels: { x: 'z' } } }),
    })
    expect(labelled.status).to.equal(200)
  })

  it('nodes of a member are not changed or deleted by a tenant, and nodes that the tenant made are', async () => {
    const nodes = { group: '', version: 'v1', resource: 'nodes' } as const
    const node = (name: string, annotations: Record<string, string>): KubeObject => ({
      ...{ apiVersion: 'v1', kind: 'Node', metadata: { name, annotations } },
      status: { capacity: { cpu: '4' } },
    })
    const shown = node('worker-1', { [contract.memberAnnotation]: 'east' })
    await served.api.client('acme' as never).create(nodes, shown, { signal: served.signal })
    const own = await acme.request('POST', '/clusters/acme/api/v1/nodes', { body: JSON.stringify(node('own', {})) })
    expect(own.status).to.equal(201)
    const headers = { 'content-type': 'application/merge-patch+json' }
    const writes = (name: string): [method: string, path: string, body?: object][] => [
      ['PATCH', name, { spec: { unschedulable: true } }],
      ['PATCH', name, { metadata: { labels: { x: 'y' } } }],
      ['PATCH', `${name}/status`, { status: { capacity: { cpu: '8' } } }],
      ['DELETE', name],
    ]
    for (const [name, refused] of [
      ['worker-1', true],
      ['own', false],
    ] as const)
      for (const [method, path, body] of writes(name)) {
        const init = body === undefined ? {} : { headers, body: JSON.stringify(body) }
        const response = await acme.request(method, `/clusters/acme/api/v1/nodes/${path}`, init)
        expect(response.status, `${method} ${path}`).to.equal(refused ? 403 : 200)
        if (refused) expect(response.text).to.contain('it is a node of member cluster')
      }
    const collection = await acme.request('DELETE', '/clusters/acme/api/v1/nodes')
    expect(collection.status).to.equal(403)
    const left = await served.api.client('acme' as never).list<KubeObject>(nodes, { signal: served.signal })
    expect(left.items.map(({ metadata }) => metadata.name)).to.deep.equal(['worker-1'])
  })
})
