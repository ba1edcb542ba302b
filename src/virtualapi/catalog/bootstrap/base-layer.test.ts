import { expect } from 'chai'
import { clusterIdOf, type ClusterId, type ClusterName, type KubeObject } from '#apimachinery/meta/index.ts'
import { createBaseLayer } from './base-layer.ts'

const a = clusterIdOf('a')
const b = clusterIdOf('b')
const rootCa = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
const layerAt = (host: string): ReturnType<typeof createBaseLayer> =>
  createBaseLayer({
    rootCa,
    frontProxyCa: (id) => `CA of ${id}\n`,
    address: { host, port: 7443 },
    directory: {
      byId: (id) => ({
        name: 'x' as ClusterName,
        id,
        uid: 'u',
        creationTimestamp: id === a ? '2026-01-02T03:04:05Z' : '2026-02-02T03:04:05Z',
        owners: [],
        deleting: false,
      }),
    },
  })
const layer = layerAt('192.0.2.7')
const rbac = 'rbac.authorization.k8s.io'

describe('the base layer', () => {
  it('has the objects that kube-apiserver 1.34 creates at its start, the definition of Placements and the ClusterRole of metrics-server', () => {
    const counts = Object.fromEntries(layer.resources.map((resource) => [resource, layer.keys(a, resource).length]))
    expect(counts).to.deep.equal({
      [`clusterroles.${rbac}`]: 69,
      [`clusterrolebindings.${rbac}`]: 49,
      [`roles.${rbac}`]: 7,
      [`rolebindings.${rbac}`]: 7,
      'flowschemas.flowcontrol.apiserver.k8s.io': 11,
      'prioritylevelconfigurations.flowcontrol.apiserver.k8s.io': 8,
      'priorityclasses.scheduling.k8s.io': 2,
      namespaces: 4,
      serviceaccounts: 4,
      configmaps: 5,
      services: 1,
      endpoints: 1,
      'endpointslices.discovery.k8s.io': 1,
      'apiservices.apiregistration.k8s.io': 23,
      'customresourcedefinitions.apiextensions.k8s.io': 1,
      'servicecidrs.networking.k8s.io': 1,
    })
  })

  it('gives JSON in stored layout, with a uid and the creationTimestamp of the logical cluster', () => {
    for (const resource of layer.resources) {
      for (const key of layer.keys(a, resource)) {
        const text = Buffer.from(layer.get(key)!).toString()
        expect(text).to.match(/^\{"kind":"[A-Za-z]+","apiVersion":"[a-z0-9./]+","metadata":\{"name":"/)
        const object = JSON.parse(text) as KubeObject
        expect(object.metadata.name).to.equal(key.name)
        expect(object.metadata.namespace ?? '').to.equal(key.namespace)
        expect(object.metadata.creationTimestamp).to.equal('2026-01-02T03:04:05Z')
        expect(object.metadata.uid).to.match(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
        expect(object.metadata).to.not.have.property('resourceVersion')
      }
    }
  })

  it('gives every object a uid of its own, in every logical cluster', () => {
    const uids = [a, b].flatMap((cluster) =>
      layer.resources.flatMap((resource) => layer.keys(cluster, resource).map((key) => read(key).metadata.uid)),
    )
    expect(new Set(uids).size).to.equal(uids.length)
    expect(uids.length).to.equal(2 * 194)
  })

  it('has the same FlowSchemas everywhere: the server reads them once for all logical clusters', () => {
    const specs = (cluster: ClusterId): unknown[] =>
      layer.keys(cluster, 'flowschemas.flowcontrol.apiserver.k8s.io').map((key) => [key.name, read(key)['spec']])
    expect(specs(a)).to.deep.equal(specs(b))
  })

  it('gives the same bytes every time', () => {
    const key = { cluster: a, resource: 'namespaces', namespace: '', name: 'default' }
    expect(layer.get(key)).to.deep.equal(layer.get(key))
  })

  it('lists keys in key order, of one namespace or of all', () => {
    for (const resource of layer.resources) {
      const keys = layer.keys(a, resource).map(({ namespace, name }) => `${namespace}\0${name}`)
      expect(keys).to.deep.equal([...keys].sort())
    }
    expect(layer.keys(a, 'configmaps', 'default')).to.deep.equal([
      { cluster: a, resource: 'configmaps', namespace: 'default', name: 'kube-root-ca.crt' },
    ])
    expect(layer.keys(a, 'configmaps', 'shop')).to.deep.equal([])
    expect(layer.keys(a, 'pods')).to.deep.equal([])
    expect(layer.get({ cluster: a, resource: 'pods', namespace: 'default', name: 'x' })).to.equal(undefined)
  })

  it('has Active namespaces and the root CA in ConfigMaps', () => {
    expect(read({ cluster: a, resource: 'namespaces', namespace: '', name: 'kube-system' })).to.deep.include({
      spec: { finalizers: ['kubernetes'] },
      status: { phase: 'Active' },
    })
    expect(
      read({ cluster: a, resource: 'configmaps', namespace: 'default', name: 'kube-root-ca.crt' })['data'],
    ).to.deep.equal({ 'ca.crt': rootCa })
  })

  it('has the address of the server as the endpoint of the Service kubernetes', () => {
    const place = { cluster: a, namespace: 'default', name: 'kubernetes' }
    const port = { name: 'https', port: 7443, protocol: 'TCP' }
    expect(read({ ...place, resource: 'endpoints' })['subsets']).to.deep.equal([
      { addresses: [{ ip: '192.0.2.7' }], ports: [port] },
    ])
    expect(read({ ...place, resource: 'endpointslices.discovery.k8s.io' })).to.deep.include({
      addressType: 'IPv4',
      endpoints: [{ addresses: ['192.0.2.7'], conditions: { ready: true } }],
      ports: [port],
    })
    expect(read({ ...place, resource: 'services' })).to.have.nested.property('spec.ports[0].targetPort', 7443)
  })

  for (const host of ['kcp.example.com', '127.0.0.1', '0.0.0.0', '169.254.1.1', '::1', '::', 'fe80::1'])
    it(`has no endpoints of the Service kubernetes at ${host}, which Endpoints may not hold`, () => {
      expect(layerAt(host).resources).to.include('services').and.not.include('endpoints')
    })

  it('has the rules of aggregated ClusterRoles filled in, so that no controller needs to write them', () => {
    for (const name of ['admin', 'edit', 'view']) {
      const role = read({ cluster: a, resource: `clusterroles.${rbac}`, namespace: '', name })
      expect(role).to.have.property('aggregationRule')
      expect(role['rules'], name).to.have.length.greaterThan(10)
    }
  })

  function read(key: { cluster: ClusterId; resource: string; namespace: string; name: string }): KubeObject {
    return JSON.parse(Buffer.from(layer.get(key)!).toString()) as KubeObject
  }
})
