import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { AdoptedNamespaces } from './adopted-namespaces.ts'

const usual = 'acmeacme22-shop'
const names = (data: Record<string, string>): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: {},
  data,
})

describe('the namespaces that a gateway knows by usual names', () => {
  let seen: string[]
  let known: AdoptedNamespaces
  let change: (key: string, before: string | undefined, after: string | undefined) => void

  beforeEach(() => {
    seen = []
    known = new AdoptedNamespaces()
    const handle = known.admitting<{ namespace: string }, string>(
      ({ namespace }, name) => `${namespace} as ${name}`,
      (key, before, after) => void seen.push(`${key}: ${before ?? '-'} > ${after ?? '-'}`),
    )
    const of = (namespace: string | undefined) => (namespace === undefined ? undefined : { namespace })
    change = (key, before, after) => handle(key, of(before), of(after))
  })

  it('are those with such names, and those that the syncer names', () => {
    known.set(names({ shop: usual, [usual]: 'bobbobbob2-shop', 'kube-system': 'default' }))
    const asked = [usual, 'shop', 'kube-system', 'blog']
    expect(asked.map((name) => known.usualNameOf(name))).to.deep.equal([usual, usual, undefined, undefined])
    expect([usual, 'bobbobbob2-shop'].map((name) => known.nameHere(name))).to.deep.equal(['shop', 'bobbobbob2-shop'])
    known.set(undefined)
    expect(known.usualNameOf('shop')).to.equal(undefined)
  })

  it('have objects that come and go with the names of their namespaces', () => {
    change('a', undefined, 'shop')
    change('b', undefined, usual)
    expect(seen).to.deep.equal([`b: - > ${usual} as ${usual}`])
    known.set(names({ shop: usual }))
    known.set(names({ shop: usual, blog: 'acmeacme22-blog' }))
    known.set(names({ shop: 'bobbobbob2-shop' }))
    change('a', 'shop', undefined)
    known.set(undefined)
    expect(seen.slice(1)).to.deep.equal([
      `a: - > shop as ${usual}`,
      `a: shop as ${usual} > shop as bobbobbob2-shop`,
      'a: shop as bobbobbob2-shop > -',
    ])
  })
})
