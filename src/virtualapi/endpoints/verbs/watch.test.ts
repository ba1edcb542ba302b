import { expect } from 'chai'
import { isStatusError } from '#apimachinery/status/index.ts'
import { StoreError } from '#store/index.ts'
import { listOptionsOf } from './list-options.ts'
import { boundedFor, openWatch, watchOptions } from './watch.ts'

const optionsOf = (query: string) => watchOptions(listOptionsOf(new URLSearchParams(query), 'watch'))

describe('the options of a watch', () => {
  for (const { query, options } of [
    { query: '', options: { since: 0, sendInitialEvents: true, bookmarks: false } },
    { query: 'resourceVersion=7', options: { since: 7, sendInitialEvents: false, bookmarks: false } },
    {
      query: 'resourceVersion=7&allowWatchBookmarks=1',
      options: { since: 7, sendInitialEvents: false, bookmarks: true },
    },
    {
      query: 'sendInitialEvents=false&resourceVersionMatch=NotOlderThan',
      options: { since: 0, sendInitialEvents: false, bookmarks: false },
    },
  ])
    it(`are read from "${query}"`, () => expect(optionsOf(query)).to.include(options))

  it('have the timeout asked for, as far as a timer can count', () => {
    expect(optionsOf('timeoutSeconds=30').timeoutMs).to.equal(30_000)
    expect(optionsOf('timeoutSeconds=99999999').timeoutMs).to.equal(2 ** 31 - 1)
  })

  it('with a token for the use of a logical cluster by others end after five minutes', () => {
    const timeoutOf = (query: string, extra: Record<string, string[]>): number =>
      boundedFor({ extra }, optionsOf(query)).timeoutMs
    const holder = { 'kcp.dev/access-holder': ['fleet'] }
    expect(timeoutOf('', holder)).to.equal(300_000)
    expect(timeoutOf('timeoutSeconds=30', holder)).to.equal(30_000)
    expect(timeoutOf('timeoutSeconds=3600', {})).to.equal(3_600_000)
  })

  it('have a random timeout from 30 to 60 minutes by default', () => {
    for (const query of ['', 'timeoutSeconds=0', 'timeoutSeconds=-1'])
      expect(optionsOf(query).timeoutMs).to.be.within(1_800_000, 3_600_000)
  })

  it('are refused with an invalid resourceVersion', () => {
    expect(() => optionsOf('resourceVersion=x')).to.throw('invalid resource version')
  })
})

describe('opening a watch', () => {
  it('at a compacted revision is 410', async () => {
    const opened = openWatch(() => Promise.reject(new StoreError('Compacted', 'too old')))
    const error: unknown = await opened.catch((reason: unknown) => reason)
    expect(isStatusError(error, 'Expired') && error.message).to.equal(
      'The resourceVersion for the provided watch is too old.',
    )
  })
  it('passes on other errors', async () => {
    const failure = new StoreError('Unavailable', 'closed')
    expect(await openWatch(() => Promise.reject(failure)).catch((error: unknown) => error)).to.equal(failure)
  })
})
