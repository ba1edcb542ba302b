import { expect } from 'chai'
import type { ClusterId, Revision } from '#apimachinery/meta/index.ts'
import { type Deletion, DeletionLog, DeletionWaiters } from './deletion-log.ts'

const at = (revision: number): Revision => revision as Revision
const scope = (resource: string, cluster = 'c1'): { cluster: ClusterId; resource: string } => ({
  cluster: cluster as ClusterId,
  resource,
})
const deletion = (resource: string, revision: number, cluster = 'c1'): Deletion => ({
  type: 'delete',
  key: { ...scope(resource, cluster), namespace: 'shop', name: `n${revision}` },
  revision: at(revision),
})
const namesAfter = (log: DeletionLog, resource: string, since: number): readonly string[] | undefined =>
  log.after(scope(resource), at(since))?.map(({ key }) => key.name)

describe('DeletionLog', () => {
  let log: DeletionLog
  beforeEach(() => {
    log = new DeletionLog()
    log.start(at(10))
    log.add(deletion('pods', 12))
    log.add(deletion('pods', 14))
  })

  it('knows deletions since it began, and none before', () => {
    expect(namesAfter(log, 'pods', 10)).to.deep.equal(['n12', 'n14'])
    expect(namesAfter(log, 'pods', 12)).to.deep.equal(['n14'])
    expect(namesAfter(log, 'pods', 9)).to.equal(undefined)
    expect(namesAfter(log, 'secrets', 9)).to.equal(undefined)
  })

  it('knows after it was shortened which kinds had no deletion', () => {
    log.shorten(at(14))
    expect(namesAfter(log, 'pods', 12)).to.equal(undefined)
    expect(namesAfter(log, 'pods', 14)).to.deep.equal([])
    expect(namesAfter(log, 'secrets', 10)).to.deep.equal([])
    expect(log.after(scope('pods', 'c2'), at(10))).to.deep.equal([])
  })

  it('goes on from what a former process has told, and from what happened since', () => {
    const next = new DeletionLog()
    next.start(at(20))
    next.add(deletion('pods', 22))
    next.extend(log.summary(at(16)), [deletion('secrets', 18)], at(20))
    expect(namesAfter(next, 'pods', 14)).to.deep.equal(['n22'])
    expect(namesAfter(next, 'pods', 13)).to.equal(undefined)
    expect(namesAfter(next, 'secrets', 11)).to.deep.equal(['n18'])
    expect(namesAfter(next, 'services', 10)).to.deep.equal([])
    expect(namesAfter(next, 'services', 9)).to.equal(undefined)
  })

  it('does not go on from what a former process has told after deletions were dropped', () => {
    const next = new DeletionLog()
    next.start(at(20))
    next.add(deletion('pods', 22))
    next.shorten(at(22))
    next.extend(log.summary(at(16)), [], at(20))
    expect(namesAfter(next, 'services', 16)).to.equal(undefined)
  })

  it('tells a later process about a bounded number of kinds, the latest', () => {
    for (let n = 0; n < 3000; n++) log.add(deletion('pods', 100 + n, `cluster-${n}`))
    const { floor, last } = log.summary(at(4000))
    expect(Object.keys(last)).to.have.length(2048)
    expect(last['cluster-2999 pods']).to.equal(3099)
    expect(floor).to.equal(100 + 3000 - 2048 - 1)
  })
})

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
