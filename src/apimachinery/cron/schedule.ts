// Times of a cron schedule: minute, hour, day of the month, month, day of the week, in UTC.

const macros: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
}
const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const days = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']
const bounds = [
  [0, 59],
  [0, 23],
  [1, 31],
  [1, 12],
  [0, 6],
] as const
const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs
/** How far ahead a time is searched, in days: to the next but one 29 February. */
const searchedDays = 8 * 366

/** The sets of a schedule, and whether one of its two days is enough. */
interface Fields {
  readonly sets: readonly ReadonlySet<number>[]
  readonly isEither: boolean
}

/** The first time of the schedule after `afterMs`, in milliseconds; undefined if there is none within eight years. */
export function nextTime(schedule: string, afterMs: number): number | undefined {
  const every = intervalOf(schedule)
  if (every !== undefined) return Math.floor(afterMs / 1000) * 1000 + every
  const fields = fieldsOf(schedule)
  if (fields === undefined) return undefined
  let at = Math.floor(afterMs / minuteMs) * minuteMs + minuteMs
  for (let days = 0; days < searchedDays; days++) {
    const end = Math.floor(at / dayMs) * dayMs + dayMs
    if (isOnDay(fields, new Date(at))) for (; at < end; at += minuteMs) if (isAtMinute(fields, new Date(at))) return at
    at = end
  }
  return undefined
}

/**
 * The last time of the schedule up to `atMs`, in milliseconds; undefined if there is none within eight years, or for an
 * interval, which has no times of its own.
 */
export function lastTime(schedule: string, atMs: number): number | undefined {
  const fields = fieldsOf(schedule)
  if (fields === undefined) return undefined
  let at = Math.floor(atMs / minuteMs) * minuteMs
  for (let days = 0; days < searchedDays; days++) {
    const begin = Math.floor(at / dayMs) * dayMs
    if (isOnDay(fields, new Date(at)))
      for (; at >= begin; at -= minuteMs) if (isAtMinute(fields, new Date(at))) return at
    at = begin - minuteMs
  }
  return undefined
}

/** The fields of a schedule; undefined if it does not have five. */
function fieldsOf(schedule: string): Fields | undefined {
  const texts = (macros[schedule] ?? schedule).trim().split(/\s+/)
  if (texts.length !== 5) return undefined
  const [day = '*', weekday = '*'] = [texts[2], texts[4]]
  // As in cron: if both days are restricted, either of them counts.
  const isEither = !day.startsWith('*') && !weekday.startsWith('*')
  return { sets: texts.map((text, i) => setOf(text.toLowerCase(), i)), isEither }
}

/** The interval of `@every 1h30m`, in milliseconds. */
function intervalOf(schedule: string): number | undefined {
  const [whole, hours = '0', minutes = '0', seconds = '0'] =
    /^@every (?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/.exec(schedule) ?? []
  if (whole === undefined) return undefined
  return Math.max(1, (Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000
}

function isOnDay({ sets: [, , day, month, weekday], isEither }: Fields, date: Date): boolean {
  if (month?.has(date.getUTCMonth() + 1) !== true) return false
  const [onDay, onWeekday] = [day?.has(date.getUTCDate()) === true, weekday?.has(date.getUTCDay()) === true]
  return isEither ? onDay || onWeekday : onDay && onWeekday
}

function isAtMinute({ sets: [minute, hour] }: Fields, date: Date): boolean {
  return hour?.has(date.getUTCHours()) === true && minute?.has(date.getUTCMinutes()) === true
}

function setOf(field: string, index: number): ReadonlySet<number> {
  const [low, high] = bounds[index] ?? [0, 0]
  const found = new Set<number>()
  for (const part of field.split(',')) {
    const [range = '', step = '1'] = part.split('/')
    const [from = '', to] = range === '*' || range === '?' ? [String(low), String(high)] : range.split('-')
    const first = numberIn(from, index)
    const last = to === undefined ? (part.includes('/') ? high : first) : numberIn(to, index)
    for (let value = first; value <= Math.min(last, 59); value += Math.max(1, Number(step) || 1))
      found.add(index === 4 ? value % 7 : value)
  }
  return found
}

function numberIn(text: string, index: number): number {
  const names = index === 3 ? months : index === 4 ? days : []
  const at = names.indexOf(text)
  return at < 0 ? Number(text) : index === 3 ? at + 1 : at
}
