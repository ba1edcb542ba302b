import { expect } from 'chai'
import { clusterIdOf } from '#apimachinery/meta/index.ts'
import { assignBuckets } from '#store/ownership/index.ts'
import { bucketNumberOf } from '#store/host/index.ts'

describe('3,000 logical clusters', () => {
  it('are spread over three replicas so that the largest share is at most 1.3 times the smallest', () => {
    // Fixed names and ids: of random ones, one set in 200 is spread more unevenly.
    const buckets = Array.from({ length: 3000 }, (_, n) => bucketNumberOf(clusterIdOf(`uid-${n}`)))
    const ratios = Array.from({ length: 20 }, (_, round) => {
      const owners = assignBuckets(['a', 'b', 'c'].map((name) => `kcp-apiserver-${round}${name}`))
      const shares = Map.groupBy(buckets, (bucket) => owners[bucket])
      expect(shares.size).to.equal(3)
      const sizes = [...shares.values()].map(({ length }) => length)
      return Math.max(...sizes) / Math.min(...sizes)
    })
    expect(Math.max(...ratios)).to.be.at.most(1.3)
  })
})
