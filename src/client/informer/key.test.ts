import { expect } from 'chai'
import { clusterInKey, clusterOf, keyFor, keyOf, parseKey } from './key.ts'

const annotations = { 'kcp.dev/logical-cluster': 'acme' }

describe('keys of an informer', () => {
  for (const { metadata, allClusters, key } of [
    { metadata: { name: 'web', namespace: 'shop' }, allClusters: false, key: 'shop/web' },
    { metadata: { name: 'shop' }, allClusters: false, key: 'shop' },
    { metadata: { name: 'web', namespace: 'shop', annotations }, allClusters: true, key: 'acme|shop/web' },
    { metadata: { name: 'shop', annotations }, allClusters: true, key: 'acme|shop' },
    { metadata: { name: 'shop', annotations }, allClusters: false, key: 'shop' },
  ]) {
    it(`are ${key}${allClusters ? ' over all logical clusters' : ''}, and parse back`, () => {
      expect(keyOf({ metadata }, { allClusters })).to.equal(key)
      expect(keyFor(parseKey(key))).to.equal(key)
      expect(clusterInKey(key)).to.equal(parseKey(key).cluster ?? '')
    })
  }
  it('contain the logical cluster of an object', () => {
    expect(clusterOf({ metadata: { annotations } })).to.equal('acme')
    expect(clusterOf({ metadata: {} })).to.equal(undefined)
  })
})
