import { expect } from 'chai'
import { Tenures } from './tenures.ts'

describe('tenures of buckets', () => {
  let now = 0
  let tenures: Tenures
  beforeEach(() => {
    now = 1000
    tenures = new Tenures({ now: () => 0, monotonic: () => now })
    tenures.extend(now + 100)
    tenures.hold([7, 8])
  })

  it('let requests in for buckets that are held, while the Lease lasts', () => {
    expect(tenures.enter(6)).to.equal(undefined)
    const tenure = tenures.enter(7)
    expect(tenure?.isValid()).to.equal(true)
    now += 100
    expect(tenure?.isValid()).to.equal(false)
    expect(tenures.enter(7)).to.equal(undefined)
    // It was renewed late, but nobody else had the bucket meanwhile.
    tenures.extend(now + 100)
    expect(tenure?.isValid()).to.equal(true)
  })

  it('end sooner once a shorter Lease was sent, and never later by that', () => {
    const tenure = tenures.enter(7)
    tenures.shorten(now + 200)
    expect(tenures.leftMs).to.equal(100)
    tenures.shorten(now + 10)
    now += 10
    expect(tenure?.isValid()).to.equal(false)
  })

  it('are not valid any more after the bucket was lost, even if it is held again', () => {
    const tenure = tenures.enter(7)
    tenures.drop([7])
    tenures.hold([7])
    expect(tenure?.isValid()).to.equal(false)
    expect(tenures.enter(7)?.isValid()).to.equal(true)
  })

  it('drain: nobody enters, and requests inside are waited for', async () => {
    const inside = [tenures.enter(7), tenures.enter(7)]
    let drained = false
    const draining = tenures.drain([7], 60_000).then(() => (drained = true))
    expect(tenures.enter(7)).to.equal(undefined)
    expect(tenures.enter(8)).not.to.equal(undefined)
    inside[0]?.leave()
    await Promise.resolve()
    expect(drained).to.equal(false)
    expect(inside[1]?.isValid()).to.equal(true)
    inside[1]?.leave()
    await draining
  })

  it('drain: a request that takes too long is not waited for', async () => {
    tenures.enter(7)
    await tenures.drain([7], 5)
    tenures.drop([7])
    expect(tenures.has(7)).to.equal(false)
  })
})
