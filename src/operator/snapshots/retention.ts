// Which snapshots of one logical cluster a schedule keeps. Pure.
import type { SnapshotRetention } from '#crds/index.ts'

/** A complete snapshot. */
export interface Kept {
  readonly name: string
  /** Unix milliseconds. */
  readonly takenMs: number
  /** Whether it has every volume that its members could give. */
  readonly isWhole?: boolean
}

const hourMs = 3_600_000
const dayMs = 24 * hourMs

/**
 * The names of those that stay: of each rule, the newest of each of so many hours, days, weeks or months that have one.
 * The newest of all always stays, and the newest with every volume. Days are those of the time zone. Throws RangeError for an unknown one.
 */
export function keptByRetention(
  snapshots: readonly Kept[],
  { last = 0, hourly = 0, daily = 0, weekly = 0, monthly = 0 }: SnapshotRetention,
  timeZone: string,
): Set<string> {
  const dateOf = datesIn(timeZone)
  const newestFirst = [...snapshots].sort((a, b) => b.takenMs - a.takenMs || (a.name < b.name ? 1 : -1))
  const rules: readonly (readonly [count: number, periodOf: (one: Kept, index: number) => string | number])[] = [
    [Math.max(1, last), (_, index) => index],
    [hourly, ({ takenMs }) => Math.floor(takenMs / hourMs)],
    [daily, ({ takenMs }) => dateOf(takenMs).day],
    // 1970-01-01 was a Thursday; weeks begin on Monday.
    [weekly, ({ takenMs }) => Math.floor((dateOf(takenMs).day + 3) / 7)],
    [monthly, ({ takenMs }) => dateOf(takenMs).month],
  ]
  const kept = new Set<string>()
  for (const [count, periodOf] of rules) {
    const periods = new Set<string | number>()
    for (const [index, one] of newestFirst.entries()) {
      if (periods.size >= count) break
      const period = periodOf(one, index)
      if (!periods.has(period)) kept.add(one.name)
      periods.add(period)
    }
  }
  const whole = newestFirst.find(({ isWhole = false }) => isWhole)
  if (whole !== undefined) kept.add(whole.name)
  return kept
}

/** Whether clocks of this zone are known. */
export function isTimeZone(name: string): boolean {
  try {
    datesIn(name)
    return true
  } catch {
    return false
  }
}

/** The day, counted from 1970, and the month of a moment on the clocks of the zone. */
function datesIn(timeZone: string): (ms: number) => { readonly day: number; readonly month: string } {
  const format = new Intl.DateTimeFormat('en-CA', {
    ...{ timeZone, calendar: 'gregory', year: 'numeric', month: '2-digit', day: '2-digit' },
  })
  return (ms) => {
    const date = format.format(ms)
    return { day: Math.floor(Date.parse(`${date}T00:00:00Z`) / dayMs), month: date.slice(0, 7) }
  }
}
