import { expect } from 'chai'
import { clusterIdOf, type ClusterName } from '#apimachinery/meta/index.ts'
import { ancestryOf, pathOf, placeInTree } from './hierarchy.ts'
import type { LogicalCluster } from './logical-cluster.ts'

describe('the ancestors of a logical cluster', () => {
  const known = new Map<string, LogicalCluster>()
  const directory = { byName: (name: ClusterName) => known.get(name) }
  /** `a < b < c`: b is below a, c below b. */
  const tree = (text: string, limits: Record<string, LogicalCluster['limits']> = {}): void => {
    known.clear()
    let parent: string | undefined
    for (const name of text.split(' < ')) {
      const own = limits[name]
      known.set(name, {
        ...{ name: name as ClusterName, id: clusterIdOf(name), uid: name, creationTimestamp: '', owners: [] },
        deleting: false,
        ...(parent === undefined ? {} : { parent: parent as ClusterName }),
        ...(own === undefined ? {} : { limits: own }),
      })
      parent = name
    }
  }
  const of = (name: string) => {
    const { ancestors, problem } = ancestryOf(known.get(name)!, directory)
    return problem ?? ancestors.map((above) => above.name)
  }

  it('are its parent, the parent of the parent and so on, by name', () => {
    tree('a < b < c')
    expect([of('a'), of('b'), of('c')]).to.deep.equal([[], ['a'], ['b', 'a']])
    expect(pathOf(known.get('c')!, directory)).to.equal('a:b:c')
    expect(pathOf(known.get('a')!, directory)).to.equal('a')
  })
  it('are none, with a reason, if one is missing, or root, or below itself', () => {
    tree('a < b < c')
    known.delete('a')
    expect(of('c')).to.equal('logical cluster "a", which is named as parent, does not exist')
    tree('root < b')
    expect(of('b')).to.equal('logical cluster "root", which is named as parent, does not exist')
    tree('a < b < c')
    known.set('a', { ...known.get('a')!, parent: 'c' as ClusterName })
    for (const name of ['a', 'b', 'c']) expect(of(name)).to.match(/^its parents form a cycle: /)
    known.set('d', { ...known.get('a')!, name: 'd' as ClusterName, parent: 'b' as ClusterName })
    expect(of('d'), 'below a cycle').to.match(/^its parents form a cycle: "d" is below "b"/)
  })
  it('are at most four, unless limits.depth of the top says otherwise', () => {
    tree('a < b < c < d < e')
    expect(of('e')).to.have.length(4)
    tree('a < b < c < d < e < f')
    expect(of('f')).to.equal('logical cluster "a" may have 4 levels below it, and this is level 5')
    tree('a < b < c < d < e < f', { a: { depth: 5 } })
    expect(of('f')).to.have.length(5)
    tree('a < b < c < d < e < f', { a: { depth: 5 }, c: { depth: 2 } })
    expect(of('f')).to.equal('logical cluster "c" may have 2 levels below it, and this is level 3')
    tree('a < b', { a: { depth: 0 } })
    expect(of('b')).to.equal('logical cluster "a" may have 0 levels below it, and this is level 1')
  })
  it('are read from the spec, with storage in bytes', () => {
    expect(placeInTree({ parentRef: { name: 'a' }, limits: { storage: '1.5Ki', objects: 3 } })).to.deep.equal({
      parent: 'a',
      limits: { storage: 1536, objects: 3 },
    })
    expect(placeInTree(undefined)).to.deep.equal({})
  })
})
