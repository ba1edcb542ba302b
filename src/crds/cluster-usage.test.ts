import { expect } from 'chai'
import { isUsageStep, withinLimits } from './cluster-usage.ts'
import { partsByHour, UsageBook } from './usage-book.ts'
import {
  hourOf,
  mergeUsageRows,
  newUsageRow,
  parseUsageRows,
  usageRowsText,
  type UsageHistory,
  type UsageRow,
} from './usage-rows.ts'

describe('usage in the status', () => {
  for (const [before, now, limit, expected] of [
    [undefined, 0, 100, true],
    [10, 10, 100, false],
    [1000, 1009, 1000_00, false],
    [10, 11, 100, true],
    [7999, 8000, 10_000, true],
    [9999, 10_000, 10_000, true],
    [10_000, 9999, 10_000, true],
    [100, 104, undefined, false],
    [100, 105, undefined, true],
    [0, 1, undefined, true],
  ] as const)
    it(`is ${expected ? '' : 'not '}written for ${String(before)} -> ${now} of ${String(limit)}`, () =>
      expect(isUsageStep(before, now, limit)).to.equal(expected))

  it('tells which limits are near and which are reached', () => {
    const limits = { storage: '1Gi', objects: 100, cpu: '2' }
    const of = (usage: object) => withinLimits(limits, usage)
    expect(withinLimits(undefined, { objects: 1 })).to.equal(undefined)
    expect(of({ objects: 79, cpu: '1599m' })).to.include({ status: 'True', reason: 'RoomLeft' })
    expect(of({ objects: 80, cpu: '1599m', watches: 1e9 })).to.include({
      status: 'False',
      reason: 'NearLimit',
      message: 'more than 80 % is used of objects (limit 100)',
    })
    expect(of({ objects: 80, storage: '1073741824' })).to.include({
      reason: 'LimitReached',
      message: 'nothing is left of storage (limit 1Gi); more than 80 % is used of objects (limit 100)',
    })
  })
})

describe('rows of usage', () => {
  const kept = new Map<string, string>()
  const history: UsageHistory = {
    own: (hour) => Promise.resolve(parseUsageRows(kept.get(hour) ?? '')),
    save: (hour, rows) => {
      kept.set(hour, usageRowsText(rows))
      return Promise.resolve()
    },
    of: (ids) => Promise.resolve([...kept.values()].flatMap((text) => parseUsageRows(text, ids))),
  }
  const { signal } = new AbortController()
  const start = Date.parse('2026-11-27T13:00:00Z')

  it('are one for each hour, also over a restart, and a damaged line spoils no other', async () => {
    for (const round of [1, 2]) {
      const book = new UsageBook(history)
      await book.open(start + round * 60_000, signal)
      book.add({ id: 'a', name: 'acme', requests: 5, byteSeconds: 0.5 })
      await book.save(signal)
    }
    const book = new UsageBook(history)
    await book.open(start + 3_599_999, signal)
    book.add({ id: 'b', name: 'other', watchSeconds: 1 })
    await book.open(start + 3_600_000, signal)
    book.add({ id: 'a', name: 'acme', requests: 1 })
    await book.save(signal)
    kept.set('damaged', 'no row\n2026-11-27T13:00:00Z\ta\tacme\t1\n')
    const rows = mergeUsageRows(await history.of(new Set(['a', 'b']), '', signal))
    expect(
      rows.map(({ hour, name, requests, watchSeconds, byteSeconds }) => [
        hour,
        name,
        requests,
        watchSeconds,
        byteSeconds,
      ]),
    ).to.deep.equal([
      ['2026-11-27T13:00:00Z', 'acme', 10, 0, 1],
      ['2026-11-27T13:00:00Z', 'other', 0, 1, 0],
      ['2026-11-27T14:00:00Z', 'acme', 1, 0, 0],
    ])
    const others = await history.of(new Set(['b', 'acme', '2026-11-27T13:00:00Z', '']), '', signal)
    expect(
      others.map(({ name }) => name),
      'only by id',
    ).to.deep.equal(['other'])
  })

  it('keep what could not be saved', async () => {
    let saved: readonly UsageRow[] = []
    let fails = true
    const book = new UsageBook({
      ...history,
      save: (_, rows) => {
        if (fails) return Promise.reject(new Error('the host does not answer'))
        saved = rows
        return Promise.resolve()
      },
    })
    await book.open(start + 7_200_000, signal)
    book.add({ id: 'a', name: 'acme', requests: 2 })
    const failure = await book.open(start + 10_800_000, signal).then(String, String)
    expect(failure).to.contain('the host does not answer')
    fails = false
    book.add({ id: 'a', name: 'acme', requests: 3 })
    await book.save(signal)
    expect(saved).to.deep.equal([
      { ...newUsageRow({ hour: '2026-11-27T15:00:00Z', id: 'a', name: 'acme' }), requests: 5 },
    ])
  })

  it('divide a time at the hours', () => {
    expect(hourOf(start + 1)).to.equal('2026-11-27T13:00:00Z')
    expect(partsByHour(start + 3_590_000, start + 7_201_000)).to.deep.equal([
      { atMs: start + 3_590_000, seconds: 10 },
      { atMs: start + 3_600_000, seconds: 3600 },
      { atMs: start + 7_200_000, seconds: 1 },
    ])
  })
})
