import { expect } from 'chai'
import { clusterIdOf, type ClusterName } from '#apimachinery/meta/index.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { AdmissionRequest } from './admission.ts'
import { validAncestry } from './tree-of-clusters.ts'

const cluster = (name: string, parent?: string): LogicalCluster => ({
  ...{
    name: name as ClusterName,
    id: clusterIdOf(name),
    uid: name,
    creationTimestamp: '',
    owners: [],
    deleting: false,
  },
  ...(parent === undefined ? {} : { parent: parent as ClusterName }),
})

describe('a logical cluster whose parents are invalid', () => {
  const known = new Map(
    [cluster('a', 'b'), cluster('b', 'a'), cluster('flat'), cluster('child', 'flat')].map((one) => [
      one.name as string,
      one,
    ]),
  )
  const plugin = validAncestry({ byName: (name) => known.get(name) })
  const write = (name: string, operation: string, realm: object = { kind: 'cluster', id: clusterIdOf(name) }) => {
    const context = {
      cluster: known.get(name) ?? cluster(name, 'missing'),
      user: { name: 'x', groups: [], extra: {}, realm },
    }
    const definition = { info: { group: '', resource: 'configmaps' } }
    const request = { operation, definition, name: 'x', context } as unknown as AdmissionRequest
    try {
      if (operation === 'DELETE') void plugin.validate?.(request, undefined, undefined)
      else void plugin.mutate?.(request, { apiVersion: 'v1', kind: 'ConfigMap', metadata: {} }, undefined)
      return 'admitted'
    } catch (error) {
      return (error as Error).message
    }
  }
  it('takes no writes and no deletions of tenants, and says why', () => {
    for (const operation of ['CREATE', 'UPDATE', 'DELETE']) {
      expect(write('a', operation)).to.match(/logical cluster "a" takes no writes: its parents form a cycle/)
      expect(write('lost', operation)).to.match(/"missing", which is named as parent, does not exist/)
    }
  })
  it('takes those of the installation; others take all', () => {
    expect(write('a', 'DELETE', { kind: 'installation' })).to.equal('admitted')
    for (const name of ['flat', 'child']) expect(write(name, 'CREATE')).to.equal('admitted')
  })
})
