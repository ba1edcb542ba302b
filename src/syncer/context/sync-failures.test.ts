import { expect } from 'chai'
import { SyncFailures, type FailureSubject } from './sync-failures.ts'

describe('the failures of a syncer', () => {
  const web: FailureSubject = { resource: 'deployments', cluster: 'acme', namespace: 'shop', name: 'web' }
  let now = 0
  let changes = 0
  let failures: SyncFailures
  beforeEach(() => {
    ;[now, changes] = [0, 0]
    failures = new SyncFailures({ monotonic: () => now }, () => changes++)
  })
  const refused = { message: 'denied', isFinal: true } as const
  const failed = { message: 'webhook failed', isFinal: false } as const

  it('are told at once if another attempt has the same result, and once only', () => {
    expect(failures.note('down', web, refused)).to.equal('denied')
    failures.markTold('down')
    expect(failures.note('down', web, refused)).to.equal(undefined)
    expect(failures.note('down', web, { ...refused, message: 'denied otherwise' })).to.equal('denied otherwise')
  })

  it('are told after a while if another attempt may succeed', () => {
    expect(failures.note('down', web, failed)).to.equal(undefined)
    expect(failures.messageOf(web)).to.equal(undefined)
    now = 1500
    expect(failures.note('down', web, failed)).to.equal('webhook failed')
    expect(failures.messageOf(web)).to.equal('webhook failed')
  })

  it('begin anew after a success', () => {
    failures.note('down', web, failed)
    expect(failures.clear('down')).to.equal(undefined)
    now = 1500
    expect(failures.note('down', web, failed)).to.equal(undefined)
  })

  it('are told again while they last, because Events expire', () => {
    failures.note('down', web, refused)
    failures.markTold('down')
    now = 1_800_000
    expect(failures.note('down', web, refused)).to.equal('denied')
  })

  it('name the object whose report must change when the step succeeds', () => {
    failures.note('pod a', web, refused)
    failures.markTold('pod a')
    expect(failures.report()).to.deep.equal({
      objects: 1,
      first: 'deployments "shop/web" of logical cluster "acme": denied',
    })
    expect(failures.clear('pod a')).to.equal(web)
    expect(failures.report()).to.equal(undefined)
    expect(failures.messageOf(web)).to.equal(undefined)
    expect(changes).to.equal(2)
  })

  it('of many steps of one object are one object in the report, and have a bound', () => {
    for (let i = 0; i < 100; i++) {
      failures.note(`pod ${i}`, web, { message: `${i} ${'x'.repeat(5000)}`, isFinal: true })
      failures.markTold(`pod ${i}`)
    }
    expect(failures.report()?.objects).to.equal(1)
    expect(failures.messageOf(web)).to.have.length(1024)
  })

  it('belong to the object that was named last', () => {
    const other = { ...web, name: 'api' }
    failures.note('pod a', web, refused)
    failures.markTold('pod a')
    expect(failures.note('pod a', other, refused)).to.equal('denied')
    expect(failures.messageOf(web)).to.equal(undefined)
  })
})
