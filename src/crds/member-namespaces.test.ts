import { expect } from 'chai'
import fc from 'fast-check'
import { clusterIdOf } from '#apimachinery/meta/index.ts'
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
  it('differs for long namespaces that differ in length, in the first 25 or in the last 26 characters', () => {
    const keyOf = (namespace: string): string => `${namespace.length} ${namespace.slice(0, 25)} ${namespace.slice(-26)}`
    fc.assert(
      fc.property(fc.uniqueArray(fc.tuple(fc.nat(10), namespaces, namespaces), { maxLength: 30 }), (some) => {
        const all = new Set(some.map(([more, begin, end]) => long(begin, end, 53 + more)))
        const keys = new Set([...all].map(keyOf))
        expect(new Set([...all].map((one) => downstreamNamespace(id, one))).size).to.equal(keys.size)
      }),
    )
    const lengths = Array.from({ length: 63 }, (_, index) => 'a'.repeat(index + 1))
    expect(new Set(lengths.map((one) => downstreamNamespace(id, one))).size).to.equal(63)
  })
})

function long(begin: string, end: string, length: number): string {
  return `${begin}${'a'.repeat(63)}`.slice(0, length - Math.min(26, end.length)) + end.slice(-26)
}
