import { expect } from 'chai'
import type { Revision } from '#apimachinery/meta/index.ts'
import { DeletionWaiters } from './deletion-waiters.ts'

describe('DeletionWaiters', () => {
  const revision = (value: number): Revision => value as Revision

  it('are not answered by the deletion of an object that had the same name before', () => {
    const waiters = new DeletionWaiters()
    waiters.add('a', { ifRevision: revision(12), resolve: () => undefined })
    expect(waiters.take('a', revision(11))).to.deep.equal([])
    expect(waiters.take('a', revision(13))).to.have.length(1)
    expect(waiters.records()).to.deep.equal([])
  })

  it('are answered once, each Record by its own deletion', () => {
    const waiters = new DeletionWaiters()
    const resolve = (): undefined => undefined
    waiters.add('a', { ifRevision: revision(1), resolve })
    waiters.add('b', { ifRevision: revision(1), resolve: () => undefined })
    expect(waiters.has('a', resolve)).to.equal(true)
    expect(waiters.take('a', revision(2))).to.have.length(1)
    expect(waiters.has('a', resolve)).to.equal(false)
    expect(waiters.take('a', revision(3))).to.deep.equal([])
    expect(waiters.records()).to.deep.equal(['b'])
  })

  it('that stop waiting leave nothing behind', () => {
    const waiters = new DeletionWaiters()
    const leave = waiters.add('a', { ifRevision: revision(1), resolve: () => undefined })
    leave()
    expect(waiters.records()).to.deep.equal([])
  })
})
