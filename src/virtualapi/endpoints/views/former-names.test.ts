import { expect } from 'chai'
import type { ClusterId, ClusterName } from '#apimachinery/meta/index.ts'
import type { ClusterDirectory, LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import { nameOf, rememberNames } from './former-names.ts'

type Listener = Parameters<ClusterDirectory['onChange']>[0]

describe('the names of deleted logical clusters', () => {
  it('are known to watches that are behind, and bounded', () => {
    const served = new Map<ClusterId, LogicalCluster>()
    const listeners: Listener[] = []
    const directory: ClusterDirectory = {
      byName: () => undefined,
      byId: (id) => served.get(id),
      all: () => served.values(),
      childrenOf: () => [],
      onChange: (listener) => {
        listeners.push(listener)
        return () => undefined
      },
    }
    rememberNames(directory)
    rememberNames(directory)
    expect(listeners).to.have.length(1)
    const clusterOf = (n: number): LogicalCluster => ({
      name: `lc-${n}` as ClusterName,
      id: String(n) as ClusterId,
      uid: '',
      creationTimestamp: '',
      owners: [],
      deleting: true,
    })
    served.set('0' as ClusterId, clusterOf(0))
    expect(nameOf(directory, '0' as ClusterId)).to.equal('lc-0')
    served.clear()
    for (let n = 0; n < 10_001; n++) listeners[0]?.({ before: clusterOf(n) })
    expect(nameOf(directory, '0' as ClusterId)).to.equal('')
    expect(nameOf(directory, '1' as ClusterId)).to.equal('lc-1')
    expect(nameOf(directory, '10000' as ClusterId)).to.equal('lc-10000')
  })
})
