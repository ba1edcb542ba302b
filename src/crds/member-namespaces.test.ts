import { expect } from 'chai'
import fc from 'fast-check'
import { clusterIdOf } from '../apimachinery/meta/index.ts'
import { downstreamNamespace, namespaceSuffix, parseDownstreamNamespace } from './sync-contract.ts'

const id = clusterIdOf('uid of acme')
const letters = fc.constantFrom(...Array.from('abcdefghijklmnopqrstuvwxyz234567-'))
const namespaces = fc
  .array(letters, { minLength: 1, maxLength: 63 })
  .map((some) => some.join('').replace(/^-+|-+$/g, 'a'))

describe('the name of a namespace in a member', () => {
  it('is a label of at most 63 characters, from which the logical cluster and the namespace are known', () => {
    fc.assert(
      fc.property(namespaces, (namespace) => {
        const name = downstreamNamespace(id, namespace)
        expect(name).to.match(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/)
        const parsed = parseDownstreamNamespace(name)
        expect(parsed?.clusterId).to.equal(id)
        expect(parsed?.suffix).to.equal(namespaceSuffix(namespace))
        if (namespace.length <= 52) expect(parsed?.suffix).to.equal(namespace)
        else expect(parsed?.isShortened).to.equal(true)
      }),
      { numRuns: 2000 },
    )
  })
  it('differs for all namespaces, also those that begin alike', () => {
    const begin = 'a'.repeat(52)
    fc.assert(
      fc.property(fc.uniqueArray(fc.tuple(fc.boolean(), namespaces), { selector: ([, one]) => one }), (some) => {
        const all = new Set(some.map(([alike, one]) => (alike ? `${begin}${one}`.slice(0, 63) : one)))
        expect(new Set([...all].map((one) => downstreamNamespace(id, one))).size).to.equal(all.size)
      }),
    )
  })
})
