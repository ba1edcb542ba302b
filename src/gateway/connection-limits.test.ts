import { expect } from 'chai'
import { ConnectionLimits } from './connection-limits.ts'

describe('the bounds of connections', () => {
  it('hold in all and for each logical cluster, and what is given back can be taken again', () => {
    const limits = new ConnectionLimits({ maxConnections: 3, maxPerCluster: 2 })
    const [first, second] = [limits.take('acme'), limits.take('acme')]
    expect(limits.take('acme')).to.equal(undefined)
    expect(limits.take('bob')).to.not.equal(undefined)
    expect([limits.take('bob'), limits.size]).to.deep.equal([undefined, 3])
    first?.()
    first?.()
    expect(limits.size).to.equal(2)
    expect([limits.take('acme') === undefined, limits.take('acme')]).to.deep.equal([false, undefined])
    second?.()
  })
})
