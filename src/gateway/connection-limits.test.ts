import { expect } from 'chai'
import { ConnectionLimits } from './connection-limits.ts'

describe('the bounds of connections', () => {
  const acme = { clusterId: 'acme' }
  const bob = { clusterId: 'bob' }
  const takeAll = (limits: ConnectionLimits, opener: Parameters<ConnectionLimits['take']>[0]): (() => void)[] => {
    const taken: (() => void)[] = []
    for (let release = limits.take(opener); release !== undefined; release = limits.take(opener)) taken.push(release)
    return taken
  }

  it('hold in all and for each logical cluster, and what is given back can be taken again', () => {
    const limits = new ConnectionLimits({ maxConnections: 3, maxPerCluster: 2 })
    const [first, second] = [limits.take(acme), limits.take(acme)]
    expect(limits.take(acme)).to.equal(undefined)
    expect(limits.take(bob)).to.not.equal(undefined)
    expect([limits.take(bob), limits.size]).to.deep.equal([undefined, 3])
    first?.()
    first?.()
    expect(limits.size).to.equal(2)
    expect([limits.take(acme) === undefined, limits.take(acme)]).to.deep.equal([false, undefined])
    second?.()
  })

  it('keep half of a logical cluster for its pods, and half of the rest for others than one address', () => {
    const limits = new ConnectionLimits({ maxConnections: 1000, maxPerCluster: 100 })
    expect(takeAll(limits, { ...acme, stranger: '192.0.2.1' })).to.have.length(25)
    expect(takeAll(limits, { ...acme, stranger: '192.0.2.2' })).to.have.length(25)
    expect(takeAll(limits, { ...acme, stranger: '192.0.2.3' })).to.have.length(0)
    expect(takeAll(limits, acme)).to.have.length(50)
    expect(takeAll(limits, { ...bob, stranger: '192.0.2.1' })).to.have.length(25)
  })

  it('keep the last quarter for logical clusters that have few connections', () => {
    const limits = new ConnectionLimits({ maxConnections: 1000, maxPerCluster: 400 })
    expect(['a', 'b', 'c'].map((clusterId) => takeAll(limits, { clusterId }).length)).to.deep.equal([400, 350, 10])
    expect(takeAll(limits, bob)).to.have.length(10)
    expect(limits.take({ clusterId: 'a' })).to.equal(undefined)
  })

  it('tell that no connection is taken, until some have ended', () => {
    const limits = new ConnectionLimits({ maxConnections: 100, maxPerCluster: 100 })
    const taken = Array.from({ length: 100 }, (_, i) => limits.take({ clusterId: String(i) }))
    expect(limits.isFull).to.equal(false)
    expect(limits.take(acme)).to.equal(undefined)
    for (const release of taken.slice(0, 4)) release?.()
    expect(limits.isFull).to.equal(true)
    taken[4]?.()
    expect(limits.isFull).to.equal(false)
  })
})
