import { expect } from 'chai'
import { lastTimeIn, nextTimeIn } from './zoned.ts'

const timeZone = 'Europe/Berlin'
const text = (at: number | undefined): string | undefined =>
  at === undefined ? undefined : new Date(at).toISOString().slice(0, 16)

describe('the times of a schedule on the clocks of a time zone', () => {
  for (const { title, schedule, at, next, last } of [
    {
      title: 'follow winter time and summer time',
      schedule: '0 20 * * 1-5',
      at: '2026-03-27T19:00:00Z',
      next: '2026-03-30T18:00',
      last: '2026-03-27T19:00',
    },
    {
      title: 'are an hour later where clocks skip them',
      schedule: '30 2 * * *',
      at: '2026-03-29T01:00:00Z',
      next: '2026-03-29T01:30',
      last: '2026-03-28T01:30',
    },
    {
      title: 'are the first of two where clocks show them twice',
      schedule: '45 2 * * *',
      at: '2026-10-25T01:10:00Z',
      next: '2026-10-26T01:45',
      last: '2026-10-25T00:45',
    },
    { title: 'may never come', schedule: '0 0 30 2 *', at: '2026-01-01T00:00:00Z', next: undefined, last: undefined },
  ])
    it(title, () => {
      const moment = Date.parse(at)
      expect([
        text(nextTimeIn({ schedule, timeZone }, moment)),
        text(lastTimeIn({ schedule, timeZone }, moment)),
      ]).to.deep.equal([next, last])
    })

  it('leave no gap and no overlap: the last time up to the next one is the next one', () => {
    for (const schedule of ['*/7 * * * *', '0 2 * * *', '30 2 * * 0', '15 3 1 * *', '0 12 29 2 *'])
      for (let at = Date.parse('2026-03-20T00:00:00Z'), i = 0; i < 60; i++) {
        const next = nextTimeIn({ schedule, timeZone }, at) ?? NaN
        expect(text(lastTimeIn({ schedule, timeZone }, next)), schedule).to.equal(text(next))
        expect(lastTimeIn({ schedule, timeZone }, next - 1), schedule).to.be.at.most(at)
        at = next + 3_600_000 * ((i * 7) % 30)
      }
  })

  it('are those of zones that exist', () => {
    expect(() => nextTimeIn({ schedule: '0 0 * * *', timeZone: 'Mars/Olympus' }, 0)).to.throw(RangeError)
  })
})
