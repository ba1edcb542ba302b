import { expect } from 'chai'
import { keptByRetention } from './retention.ts'

describe('the snapshots that a schedule keeps', () => {
  const at = (text: string) => ({ name: text, takenMs: Date.parse(text) })
  const kept = (texts: readonly string[], rules: object, timeZone = 'UTC'): string[] =>
    texts.filter((text) => keptByRetention(texts.map(at), rules, timeZone).has(text))
  const daysOf = (month: string, count: number): string[] =>
    Array.from({ length: count }, (_, i) => `${month}-${String(i + 1).padStart(2, '0')}T03:00:00Z`)

  it('are the last ones, and always the newest', () => {
    const days = daysOf('2026-03', 5)
    expect(kept(days, { last: 2 })).to.deep.equal(days.slice(3))
    expect(kept(days, { last: 0 })).to.deep.equal(days.slice(4))
    expect(kept(days, {})).to.deep.equal(days.slice(4))
    expect(kept([], { last: 3 })).to.deep.equal([])
  })

  it('are also the newest with every volume, however long a member has not answered', () => {
    const days = daysOf('2026-03', 9).map((text, index) => ({ ...at(text), isWhole: index < 2 }))
    const found = keptByRetention(days, { last: 3 }, 'UTC')
    expect([...found].sort()).to.deep.equal([1, 6, 7, 8].map((index) => days[index]?.name))
  })

  it('are the newest of each hour, day, week and month, of all rules together', () => {
    const days = [...daysOf('2026-01', 31), ...daysOf('2026-02', 28), ...daysOf('2026-03', 10)]
    expect(kept(days, { daily: 2, weekly: 3, monthly: 3 })).to.deep.equal([
      '2026-01-31T03:00:00Z',
      '2026-02-28T03:00:00Z',
      '2026-03-01T03:00:00Z',
      '2026-03-08T03:00:00Z',
      '2026-03-09T03:00:00Z',
      '2026-03-10T03:00:00Z',
    ])
    const quarters = ['01:00', '01:15', '01:45', '02:10', '04:20'].map((time) => `2026-03-10T${time}:00Z`)
    expect(kept(quarters, { hourly: 2 })).to.deep.equal([quarters[3], quarters[4]])
    expect(kept(quarters, { hourly: 3 })).to.deep.equal([quarters[2], quarters[3], quarters[4]])
  })

  it('have the days of the time zone', () => {
    const texts = ['2026-03-09T14:30:00Z', '2026-03-09T15:30:00Z', '2026-03-10T01:00:00Z']
    expect(kept(texts, { daily: 2 })).to.deep.equal(texts.slice(1))
    // In Tokyo, the second one is of the 10th.
    expect(kept(texts, { daily: 2 }, 'Asia/Tokyo')).to.deep.equal([texts[0], texts[2]])
    expect(() => kept(texts, {}, 'Mars/Olympus')).to.throw(RangeError)
  })

  it('never lose the newest, whatever the rules, and never grow with fewer rules', () => {
    const random = (seed: number) => () => (seed = (seed * 1103515245 + 12345) % 2 ** 31) / 2 ** 31
    const next = random(7)
    for (let round = 0; round < 200; round++) {
      const texts = Array.from({ length: 1 + Math.floor(next() * 30) }, () =>
        new Date(Date.UTC(2026, 0, 1) + Math.floor(next() * 100 * 86_400_000)).toISOString(),
      )
      const rules = { last: Math.floor(next() * 3), daily: Math.floor(next() * 5), monthly: Math.floor(next() * 3) }
      const found = keptByRetention(texts.map(at), rules, 'America/New_York')
      expect(found.has([...texts].sort().at(-1) ?? '')).to.equal(true)
      expect(found.size).to.be.at.most(Math.max(1, rules.last) + rules.daily + rules.monthly)
      const fewer = keptByRetention(texts.map(at), { ...rules, monthly: 0 }, 'America/New_York')
      for (const name of fewer) expect(found.has(name)).to.equal(true)
    }
  })
})
