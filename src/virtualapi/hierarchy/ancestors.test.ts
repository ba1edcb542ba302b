import { expect } from 'chai'
import type { ClusterId, ClusterName } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { ClusterObjects } from '#store/watch-cache/index.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import { createAncestors } from './ancestors.ts'

const clusterOf = (name: string, parent?: string): LogicalCluster => ({
  name: name as ClusterName,
  id: `id-${name}` as ClusterId,
  uid: name,
  creationTimestamp: '2026-01-01T00:00:00Z',
  owners: [],
  deleting: false,
  ...(parent !== undefined && { parent: parent as ClusterName }),
})

describe('the ancestors of a logical cluster', () => {
  it('are all there for policies, or the request fails with 503', () => {
    const clusters = [clusterOf('top'), clusterOf('middle', 'top'), clusterOf('leaf', 'middle')]
    const inMemory = new Set(['id-top', 'id-middle'])
    const objectsOf = (id: ClusterId): ClusterObjects => ({ cluster: id }) as ClusterObjects
    const ancestors = createAncestors(
      {
        byName: (name) => clusters.find((one) => one.name === name),
        byId: (id) => clusters.find((one) => one.id === id),
      },
      {
        loaded: (id) => (inMemory.has(id) ? objectsOf(id) : undefined),
        cluster: (id) => Promise.resolve(objectsOf(id)),
      },
    )
    const leaf = 'id-leaf' as ClusterId
    expect(ancestors.all(leaf).map(({ cluster }) => cluster.name)).to.deep.equal(['middle', 'top'])
    // Memory was short, and the top was evicted after it was loaded.
    inMemory.delete('id-top')
    try {
      ancestors.all(leaf)
    } catch (error) {
      expect(isStatusError(error) && error.code).to.equal(503)
      return
    }
    expect.fail('the policies of the top would not have acted')
  })
})
