// Durations as kubectl's tables show them, with two or three significant digits.

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

/**
 * The text of a duration in milliseconds, such as `45s`, `3m20s`, `5h`, `2d4h` or `3y12d`; `<invalid>` below -1 s, to
 * allow for clock skew.
 */
export function humanDuration(spanMs: number): string {
  const seconds = Math.trunc(spanMs / second)
  if (seconds < -1) return '<invalid>'
  if (seconds < 0) return '0s'
  if (seconds < 120) return `${seconds}s`
  const minutes = Math.floor(spanMs / minute)
  if (minutes < 10) return withRest(minutes, 'm', seconds % 60, 's')
  if (minutes < 180) return `${minutes}m`
  const hours = Math.floor(spanMs / hour)
  if (hours < 8) return withRest(hours, 'h', minutes % 60, 'm')
  if (hours < 48) return `${hours}h`
  const days = Math.floor(spanMs / day)
  if (days < 8) return withRest(days, 'd', hours % 24, 'h')
  if (days < 2 * 365) return `${days}d`
  const years = Math.floor(days / 365)
  return years < 8 ? withRest(years, 'y', days % 365, 'd') : `${years}y`
}

/** The time since an RFC 3339 time, as text; `<unknown>` if it is absent or invalid. */
export function timeSince(timestamp: unknown, nowMs: number): string {
  if (typeof timestamp !== 'string' || timestamp === '') return '<unknown>'
  const at = Date.parse(timestamp)
  return Number.isNaN(at) ? '<unknown>' : humanDuration(nowMs - at)
}

function withRest(count: number, unit: string, rest: number, restUnit: string): string {
  return rest === 0 ? `${count}${unit}` : `${count}${unit}${rest}${restUnit}`
}
