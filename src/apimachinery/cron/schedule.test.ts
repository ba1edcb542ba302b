import { expect } from 'chai'
import { nextTime } from './schedule.ts'

describe('the next time of a cron schedule', () => {
  const after = (schedule: string, from: string): string | undefined => {
    const at = nextTime(schedule, Date.parse(from))
    return at === undefined ? undefined : new Date(at).toISOString().slice(0, 16)
  }
  for (const [schedule, from, expected] of [
    ['* * * * *', '2026-01-01T00:00:30Z', '2026-01-01T00:01'],
    ['*/15 * * * *', '2026-01-01T00:15:00Z', '2026-01-01T00:30'],
    ['5,10 3 * * *', '2026-01-01T03:05:00Z', '2026-01-01T03:10'],
    ['0 9-17/4 * * mon-fri', '2026-01-03T00:00:00Z', '2026-01-05T09:00'],
    ['30 2 29 feb *', '2027-03-01T00:00:00Z', '2028-02-29T02:30'],
    ['0 0 13 * 5', '2026-01-01T00:00:00Z', '2026-01-02T00:00'],
    ['0 0 * * 7', '2026-01-01T00:00:00Z', '2026-01-04T00:00'],
    ['@daily', '2026-01-01T12:00:00Z', '2026-01-02T00:00'],
    ['0 0 30 feb *', '2026-01-01T00:00:00Z', undefined],
    ['@every 5m', '2026-01-01T00:00:00Z', '2026-01-01T00:05'],
    ['0 0 * *', '2026-01-01T00:00:00Z', undefined],
  ] as const)
    it(`of "${schedule}" after ${from} is ${expected ?? 'never'}`, () => {
      expect(after(schedule, from)).to.equal(expected)
    })
})
