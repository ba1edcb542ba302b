import { expect } from 'chai'
import { ServiceEndpoints } from './service-endpoints.ts'
import type { LocalSlice } from './slice-record.ts'

const target = { namespace: 'acmeacme22-shop', service: 'web', port: 'http' }

function slice(ready: readonly string[], ending: readonly string[] = []): LocalSlice {
  const endpoint = (name: string, isReady: boolean) => ({ address: name, pod: `acmeacme22-shop/${name}`, isReady })
  return {
    type: 'local',
    namespace: target.namespace,
    service: target.service,
    ports: [{ name: 'http', port: 80 }],
    endpoints: [...ready.map((name) => endpoint(name, true)), ...ending.map((name) => endpoint(name, false))],
  }
}

describe('the choice of an endpoint', () => {
  let now = 0
  let gone: Set<string>
  let drawn: number[]
  let endpoints: ServiceEndpoints
  const chosen = (): string[] => endpoints.choose(target).map(({ address }) => address)

  beforeEach(() => {
    now = 0
    gone = new Set()
    drawn = []
    endpoints = new ServiceEndpoints({
      clock: { monotonic: () => now },
      random: () => drawn.shift() ?? 0,
      isOfPod: (address, pod) => pod.endsWith(`/${address}`) && !gone.has(address),
    })
  })

  it('is none of an unknown Service', () => expect(chosen()).to.deep.equal([]))

  it('is of three at most, each once, for any random numbers', () => {
    endpoints.set('s', undefined, slice(['a', 'b', 'c', 'd']))
    for (const random of [0, 0.3, 0.999]) {
      drawn = Array.from({ length: 9 }, () => random)
      expect(new Set(chosen()).size).to.equal(3)
    }
    endpoints.set('s', slice(['a', 'b', 'c', 'd']), slice(['a', 'b']))
    expect(chosen().toSorted()).to.deep.equal(['a', 'b'])
  })

  it('prefers the one with fewer connections of two', () => {
    endpoints.set('s', undefined, slice(['a', 'b']))
    const [first] = endpoints.choose(target)
    expect(first?.address).to.equal('a')
    const closed = endpoints.opened({ address: 'a', port: 80, pod: '' })
    expect(chosen()[0]).to.equal('b')
    closed()
    expect(chosen()[0]).to.equal('a')
  })

  it('falls back to pods that end, then to those that have left, the most recent first', () => {
    const steps = [slice(['a', 'b', 'c']), slice(['b', 'c']), slice(['c']), slice([], ['c'])]
    steps.forEach((after, index) => endpoints.set('s', steps[index - 1], after))
    expect(chosen()).to.deep.equal(['c', 'b', 'a'])
    endpoints.set('s', slice([], ['c']), slice(['d']))
    expect(chosen()).to.deep.equal(['d'])
    endpoints.set('s', slice(['d']), undefined)
    expect(chosen()).to.deep.equal(['d', 'c', 'b'])
  })

  it('leaves out pods that are gone, whose address others may have', () => {
    endpoints.set('s', undefined, slice(['a', 'b']))
    endpoints.set('s', slice(['a', 'b']), slice([]))
    gone.add('a')
    expect(chosen()).to.deep.equal(['b'])
  })

  it('forgets after ten minutes, and remembers sixteen', () => {
    const many = Array.from({ length: 20 }, (_, index) => `p${index}`)
    endpoints.set('s', undefined, slice(many))
    endpoints.set('s', slice(many), undefined)
    for (const name of many.slice(0, 15)) gone.add(name)
    expect(chosen()).to.deep.equal(['p15'])
    now = 10 * 60_000 + 1
    expect(chosen()).to.deep.equal([])
    endpoints.sweep()
    expect(endpoints.size).to.equal(0)
  })
})
