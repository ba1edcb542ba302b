// Times of a cron schedule on the clocks of a time zone. Where clocks are set forward over a time, it is that much later;
// where they are set back over it, it is the first of the two.
import { remember } from '#apimachinery/memo/index.ts'
import { lastTime, nextTime } from './schedule.ts'

export interface ZonedSchedule {
  /** Five fields, or a word such as `@daily`. */
  readonly schedule: string
  /** A name such as `Europe/Berlin`; default UTC. */
  readonly timeZone?: string
}

const dayMs = 86_400_000
/** No clocks are set back by more. */
const setBackMs = 3 * 3_600_000
/** Times that a change of the clocks can put on the other side of the moment that is asked about. */
const maxTries = 500

/** The first time after `afterMs`, Unix milliseconds; undefined if there is none. Throws RangeError for an unknown zone. */
export function nextTimeIn({ schedule, timeZone = 'UTC' }: ZonedSchedule, afterMs: number): number | undefined {
  let wall: number | undefined = afterMs + offsetMs(timeZone, afterMs) - setBackMs
  for (let tries = 0; tries < maxTries; tries++) {
    wall = nextTime(schedule, wall)
    if (wall === undefined) return undefined
    const at = momentOf(timeZone, wall)
    if (at > afterMs) return at
  }
  return undefined
}

/** The last time up to `atMs`, Unix milliseconds; undefined if there is none. Throws RangeError for an unknown zone. */
export function lastTimeIn({ schedule, timeZone = 'UTC' }: ZonedSchedule, atMs: number): number | undefined {
  let wall: number | undefined = atMs + offsetMs(timeZone, atMs) + setBackMs
  for (let tries = 0; tries < maxTries; tries++) {
    wall = lastTime(schedule, wall)
    if (wall === undefined) return undefined
    const at = momentOf(timeZone, wall)
    if (at <= atMs) return at
    wall -= 60_000
  }
  return undefined
}

/** The moment at which clocks show this time, which is given as if it were UTC. */
function momentOf(timeZone: string, wall: number): number {
  const [earlier, later] = [wall - offsetMs(timeZone, wall - dayMs), wall - offsetMs(timeZone, wall + dayMs)]
  const shown = [earlier, later].filter((at) => at + offsetMs(timeZone, at) === wall)
  return shown.length === 0 ? earlier : Math.min(...shown)
}

const formats = new Map<string, Intl.DateTimeFormat>()
const maxFormats = 200

/** How far clocks of the zone are ahead of UTC at this moment. */
function offsetMs(timeZone: string, at: number): number {
  if (timeZone === 'UTC') return 0
  const format = formats.get(timeZone) ?? remember(formats, timeZone, formatOf(timeZone), { max: maxFormats })
  const parts = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]))
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(at / 1000) * 1000
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const numeric = 'numeric'
  return new Intl.DateTimeFormat('en-US', {
    ...{ timeZone, calendar: 'gregory', hourCycle: 'h23' },
    ...{ year: numeric, month: numeric, day: numeric, hour: numeric, minute: numeric, second: numeric },
  })
}
