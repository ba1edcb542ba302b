// Timestamps and durations: reading, printing, arithmetic, and the parts of a timestamp in a time zone.
import { CelDuration, CelError, CelTimestamp } from './value.ts'
import { intOverflow, maxInt64, minInt64 } from './integers.ts'

const minSeconds = -62_135_596_800
const maxSeconds = 253_402_300_799
const second = 1_000_000_000n

export const timestampOverflow = new CelError('timestamp overflow')

/** The timestamp of whole seconds since 1970. */
export function timestampOfSeconds(seconds: bigint | number): CelTimestamp | CelError {
  return seconds < minSeconds || seconds > maxSeconds ? timestampOverflow : new CelTimestamp(Number(seconds), 0)
}

function timestampOfNanos(nanos: bigint): CelTimestamp | CelError {
  const rest = ((nanos % second) + second) % second
  const seconds = (nanos - rest) / second
  if (seconds < BigInt(minSeconds) || seconds > BigInt(maxSeconds)) return timestampOverflow
  return new CelTimestamp(Number(seconds), Number(rest))
}

const nanosOf = ({ seconds, nanos }: CelTimestamp): bigint => BigInt(seconds) * second + BigInt(nanos)

function checkedDuration(nanos: bigint): CelDuration | CelError {
  return nanos < minInt64 || nanos > maxInt64 ? intOverflow : new CelDuration(nanos)
}

export const addDurations = (a: CelDuration, b: CelDuration): CelDuration | CelError =>
  checkedDuration(a.nanos + b.nanos)
export const subtractDurations = (a: CelDuration, b: CelDuration): CelDuration | CelError =>
  checkedDuration(a.nanos - b.nanos)
export const negateDuration = ({ nanos }: CelDuration): CelDuration | CelError => checkedDuration(-nanos)
export const addToTimestamp = (a: CelTimestamp, b: CelDuration): CelTimestamp | CelError =>
  timestampOfNanos(nanosOf(a) + b.nanos)
export const subtractFromTimestamp = (a: CelTimestamp, b: CelDuration): CelTimestamp | CelError =>
  timestampOfNanos(nanosOf(a) - b.nanos)
export const subtractTimestamps = (a: CelTimestamp, b: CelTimestamp): CelDuration | CelError =>
  checkedDuration(nanosOf(a) - nanosOf(b))

const rfc3339 = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:[.,](\d+))?(Z|[+-]\d{2}:\d{2})$/

/** Reads RFC 3339 as Go's time.Parse does; undefined where it is none. */
export function parseTimestamp(text: string): CelTimestamp | CelError | undefined {
  const match = rfc3339.exec(text)
  if (match === null) return undefined
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, secondOfMinute = 0] = match.slice(1, 7).map(Number)
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day || hour > 23 || minute > 59 || secondOfMinute > 59)
    return undefined
  const offset = zoneOffsetSeconds(match[8] ?? 'Z')
  if (offset === undefined) return undefined
  const seconds = date.getTime() / 1000 + hour * 3600 + minute * 60 + secondOfMinute - offset
  if (seconds < minSeconds || seconds > maxSeconds) return timestampOverflow
  return new CelTimestamp(seconds, Number((match[7] ?? '').padEnd(9, '0').slice(0, 9)))
}

function zoneOffsetSeconds(zone: string): number | undefined {
  if (zone === 'Z') return 0
  const [hours, minutes] = [Number(zone.slice(1, 3)), Number(zone.slice(4, 6))]
  if (hours > 24 || minutes > 60) return undefined
  return (zone.startsWith('-') ? -1 : 1) * (hours * 3600 + minutes * 60)
}

/** RFC 3339 in UTC, with as many digits after the second as are needed. */
export function printTimestamp({ seconds, nanos }: CelTimestamp): string {
  const date = new Date(seconds * 1000)
  const year = String(date.getUTCFullYear()).padStart(4, '0')
  const rest = date
    .toISOString()
    .replace(/^[+-]?\d+-/, '')
    .slice(0, 14)
  const fraction = nanos === 0 ? '' : `.${String(nanos).padStart(9, '0').replace(/0+$/, '')}`
  return `${year}-${rest}${fraction}Z`
}

const units: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1000n,
  µs: 1000n,
  μs: 1000n,
  ms: 1_000_000n,
  s: second,
  m: 60n * second,
  h: 3600n * second,
}

/** Reads a duration as Go's time.ParseDuration does; undefined where it is none or does not fit 64 bits. */
export function parseDuration(text: string): CelDuration | undefined {
  const sign = text.startsWith('-') ? -1n : 1n
  const body = text.replace(/^[+-]/, '')
  if (body === '0') return new CelDuration(0n)
  if (!/^(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/.test(body)) return undefined
  let total = 0n
  for (const [, whole = '', fraction = '', unit = ''] of body.matchAll(/(\d*)\.?(\d*)(ns|us|µs|μs|ms|s|m|h)/g)) {
    const scale = units[unit] ?? 0n
    total += BigInt(whole === '' ? '0' : whole) * scale
    const digits = fraction.slice(0, 18)
    if (digits !== '') total += (BigInt(digits) * scale) / 10n ** BigInt(digits.length)
    if (total > maxInt64 + 1n) return undefined
  }
  const nanos = sign * total
  return nanos > maxInt64 || nanos < minInt64 ? undefined : new CelDuration(nanos)
}

/** Seconds with a fraction: `3600.5s`. */
export function printDuration({ nanos }: CelDuration): string {
  // Through a double, as Go prints it.
  const [whole, rest] = [nanos / second, nanos % second]
  return `${plainNumber(Number(whole) + Number(rest) / 1e9)}s`
}

/** A double in full, without an exponent. */
export function plainNumber(value: number): string {
  const text = String(value)
  const match = /^(-?)(\d)(?:\.(\d+))?e([+-]\d+)$/.exec(text)
  if (match === null) return text
  const [, sign = '', lead = '', fraction = '', exponentText = '0'] = match
  const digits = lead + fraction
  const point = 1 + Number(exponentText)
  if (point <= 0) return `${sign}0.${'0'.repeat(-point)}${digits}`
  return `${sign}${digits.padEnd(point, '0').slice(0, point)}${digits.length > point ? `.${digits.slice(point)}` : ''}`
}

export type TimePart =
  | 'getFullYear'
  | 'getMonth'
  | 'getDayOfYear'
  | 'getDate'
  | 'getDayOfMonth'
  | 'getDayOfWeek'
  | 'getHours'
  | 'getMinutes'
  | 'getSeconds'
  | 'getMilliseconds'

/** One part of a timestamp in a time zone: a name such as `Europe/Berlin` or an offset such as `-08:00`. */
export function timePart(part: TimePart, time: CelTimestamp, zone = 'UTC'): number | CelError {
  const offset = offsetSeconds(time, zone)
  if (offset instanceof CelError) return offset
  const date = new Date((time.seconds + offset) * 1000)
  switch (part) {
    case 'getFullYear':
      return date.getUTCFullYear()
    case 'getMonth':
      return date.getUTCMonth()
    case 'getDayOfYear': {
      const first = new Date(date)
      first.setUTCMonth(0, 1)
      return Math.round((date.getTime() - first.getTime()) / 86_400_000)
    }
    case 'getDate':
      return date.getUTCDate()
    case 'getDayOfMonth':
      return date.getUTCDate() - 1
    case 'getDayOfWeek':
      return date.getUTCDay()
    case 'getHours':
      return date.getUTCHours()
    case 'getMinutes':
      return date.getUTCMinutes()
    case 'getSeconds':
      return date.getUTCSeconds()
    case 'getMilliseconds':
      return Math.trunc(time.nanos / 1_000_000)
  }
}

function offsetSeconds(time: CelTimestamp, zone: string): number | CelError {
  if (zone === 'UTC' || zone === '') return 0
  const colon = zone.indexOf(':')
  if (colon < 0) return namedOffset(time, zone)
  const [hours, minutes] = [zone.slice(0, colon), zone.slice(colon + 1)]
  for (const text of [hours, minutes])
    if (!/^[+-]?\d+$/.test(text)) return new CelError(`strconv.Atoi: parsing "${text}": invalid syntax`)
  return (Number(hours) * 60 + (zone.startsWith('-') ? -1 : 1) * Number(minutes)) * 60
}

function namedOffset({ seconds }: CelTimestamp, zone: string): number | CelError {
  try {
    const format = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset', year: 'numeric' })
    const name = format.formatToParts(new Date(seconds * 1000)).find(({ type }) => type === 'timeZoneName')?.value ?? ''
    const match = /^GMT([+-])(\d{2}):(\d{2})(?::(\d{2}))?$/.exec(name)
    if (match === null) return 0
    const [, mark, hours, minutes, rest = '0'] = match
    return (mark === '-' ? -1 : 1) * (Number(hours) * 3600 + Number(minutes) * 60 + Number(rest))
  } catch {
    return new CelError(`unknown time zone ${zone}`)
  }
}
