import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { ObjectIndex } from './object-index.ts'
import { CacheStore } from './store.ts'

describe('an index of an informer', () => {
  const pod = (name: string, labels: Record<string, string>, resourceVersion = '1'): KubeObject => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, uid: name, resourceVersion, labels },
  })
  let store: CacheStore<KubeObject>
  let index: ObjectIndex
  const names = (value: string): string[] => [...index.of(value)].map(({ metadata }) => metadata.name ?? '')

  beforeEach(() => {
    store = new CacheStore<KubeObject>((error) => {
      throw error as Error
    })
    store.put('a', pod('a', { red: '', round: '' }))
    index = new ObjectIndex({ onChange: (listener) => store.subscribe(listener) }, (_, { metadata }) =>
      Object.keys(metadata.labels ?? {}),
    )
    store.put('b', pod('b', { red: '' }))
  })

  it('contains objects from before and after its creation, in each of their groups', () => {
    expect([names('red'), names('round'), names('blue')]).to.deep.equal([['a', 'b'], ['a'], []])
    expect([...index.keysOf('red')]).to.deep.equal(['a', 'b'])
  })

  it('moves a changed object to its new groups', () => {
    store.put('a', pod('a', { blue: '', round: '' }, '2'))
    expect([names('red'), names('round'), names('blue')]).to.deep.equal([['b'], ['a'], ['a']])
    expect([...index.of('round')][0]?.metadata.resourceVersion).to.equal('2')
  })

  it('forgets a deleted object', () => {
    store.remove('a')
    expect([names('red'), names('round')]).to.deep.equal([['b'], []])
  })

  it('does not change after its disposal', () => {
    index[Symbol.dispose]()
    store.remove('a')
    expect(names('red')).to.deep.equal(['a', 'b'])
  })
})
