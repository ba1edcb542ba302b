import { expect } from 'chai'
import { clusterIdOf, type ClusterId, type ClusterName, type KubeObject } from '../../apimachinery/meta/index.ts'
import { createBaseLayer } from './base-layer.ts'

const a = clusterIdOf('a')
const b = clusterIdOf('b')
const rootCa = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
const layer = createBaseLayer({
  rootCa,
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
const rbac = 'rbac.authorization.k8s.io'

describe('the base layer', () => {
  it('has the objects that kube-apiserver 1.34 creates at its start', () => {
    const counts = Object.fromEntries(layer.resources.map((resource) => [resource, layer.keys(a, resource).length]))
    expect(counts).to.deep.equal({
      [`clusterroles.${rbac}`]: 68,
      [`clusterrolebindings.${rbac}`]: 49,
      [`roles.${rbac}`]: 7,
      [`rolebindings.${rbac}`]: 7,
      'flowschemas.flowcontrol.apiserver.k8s.io': 11,
      'prioritylevelconfigurations.flowcontrol.apiserver.k8s.io': 8,
      'priorityclasses.scheduling.k8s.io': 2,
      namespaces: 4,
      serviceaccounts: 4,
      configmaps: 4,
      services: 1,
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
    expect(uids.length).to.equal(2 * 166)
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
