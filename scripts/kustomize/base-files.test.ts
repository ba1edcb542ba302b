import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { baseFolders, differences, withoutHelm } from './base-files.ts'

const object = (kind: string, name: string, rest: object = {}): KubeObject => ({
  apiVersion: 'v1',
  kind,
  metadata: { name },
  ...rest,
})
const labelled = { app: 'kcp', 'helm.sh/chart': 'kcp-1', 'app.kubernetes.io/managed-by': 'Helm' }

describe('the kustomize base', () => {
  it('has no hooks of Helm and no label that names it, in pod templates neither', () => {
    const hook = object('Job', 'hook', { metadata: { name: 'hook', annotations: { 'helm.sh/hook': 'test' } } })
    const template = { metadata: { labels: labelled } }
    const kept = { 'helm.sh/resource-policy': 'keep' }
    const deployment = object('Deployment', 'a', {
      metadata: { name: 'a', labels: labelled, annotations: kept },
      spec: { template },
    })
    expect(withoutHelm([hook, deployment])).to.deep.equal([
      object('Deployment', 'a', {
        metadata: { name: 'a', labels: { app: 'kcp' } },
        spec: { template: { metadata: { labels: { app: 'kcp' } } } },
      }),
    ])
  })

  it('has each object in one folder, and refers to the generated ones', () => {
    const objects = ['Namespace', 'CustomResourceDefinition', 'ClusterRole', 'ClusterRoleBinding', 'Deployment'].map(
      (kind) => object(kind, 'a'),
    )
    const folders = baseFolders(objects, { crd: ['a.yaml'], rbac: ['b.yaml'] })
    const placed = Object.entries(folders).map(([folder, { files, resources }]) => [
      folder,
      resources,
      Object.entries(files).map(([name, list]) => [name, list.map(({ kind }) => kind)]),
    ])
    expect(placed).to.deep.equal([
      ['crd', ['a.yaml'], []],
      ['rbac', ['b.yaml'], [['bindings.yaml', ['ClusterRoleBinding']]]],
      ['manager', [], [['manager.yaml', ['Deployment']]]],
      ['default', ['../crd', '../rbac', '../manager'], [['namespace.yaml', ['Namespace']]]],
    ])
  })

  it('differs from the chart where an object is missing or has another value, not where fields have another order', () => {
    const chart = { name: 'the chart', objects: [object('A', 'a', { x: 1, y: 2 }), object('B', 'b'), object('C', 'c')] }
    const base = { name: 'the base', objects: [object('A', 'a', { y: 2, x: 1 }), object('B', 'b', { z: 1 })] }
    const found = differences(chart, base)
    expect(found).to.have.length(2)
    expect(found[0]).to.match(/^v1 B {2}b: the chart has .*, the base has .*"z":1/)
    expect(found[1]).to.equal('v1 C  c: only in the chart')
  })
})
