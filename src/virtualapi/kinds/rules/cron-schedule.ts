// Parser of CronJob schedules: five fields, or a descriptor such as @hourly.
import { goQuote } from '#apimachinery/text/index.ts'
import { isTimeZone } from './time-zones.ts'

interface Field {
  readonly low: number
  readonly high: number
  readonly names?: readonly string[]
}

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const days = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']
const fields: readonly Field[] = [
  { low: 0, high: 59 },
  { low: 0, high: 23 },
  { low: 1, high: 31 },
  { low: 1, high: 12, names: months },
  { low: 0, high: 6, names: days },
]
const words = new Set(['@yearly', '@annually', '@monthly', '@weekly', '@daily', '@midnight', '@hourly'])
const every = '@every '

/** The error of upstream's cron parser for a schedule; undefined if it is valid. */
export function scheduleError(schedule: string): string | undefined {
  if (schedule === '') return 'empty spec string'
  const zone = /^(?:CRON_)?TZ=/.exec(schedule)?.[0]
  if (zone === undefined) return specError(schedule)
  // Go crashes without a space.
  const space = schedule.indexOf(' ')
  const name = schedule.slice(zone.length, space < 0 ? undefined : space)
  const wrong = space < 0 ? 'no schedule' : locationError(name)
  return wrong === undefined ? specError(schedule.slice(space).trim()) : `provided bad location ${name}: ${wrong}`
}

/** The error of time.LoadLocation, for which no name is UTC. */
export function locationError(name: string): string | undefined {
  if (name === '' || name === 'Local' || isTimeZone(name)) return undefined
  return name.includes('..') || /^[/\\]/.test(name) ? 'time: invalid location name' : `unknown time zone ${name}`
}

function specError(text: string): string | undefined {
  if (text.startsWith('@')) return descriptorError(text)
  const parts = text.split(/\s+/).filter((part) => part !== '')
  if (parts.length !== fields.length) return `expected exactly 5 fields, found ${parts.length}: [${parts.join(' ')}]`
  for (const [index, part] of parts.entries())
    for (const range of part.split(',').filter((one) => one !== '')) {
      const field = fields[index]
      const wrong = field === undefined ? undefined : rangeError(range, field)
      if (wrong !== undefined) return wrong
    }
  return undefined
}

function descriptorError(text: string): string | undefined {
  if (words.has(text)) return undefined
  if (!text.startsWith(every)) return `unrecognized descriptor: ${text}`
  const wrong = durationError(text.slice(every.length))
  return wrong === undefined ? undefined : `failed to parse duration ${text}: ${wrong}`
}

const units = new Set(['ns', 'us', 'µs', 'μs', 'ms', 's', 'm', 'h'])

/** The error of time.ParseDuration. Durations of more than 64 bits are not looked for. */
function durationError(text: string): string | undefined {
  const invalid = `time: invalid duration ${goQuote(text)}`
  let rest = text.replace(/^[+-]/, '')
  if (rest === '0') return undefined
  if (rest === '') return invalid
  while (rest !== '') {
    const number = /^(?:\d+(?:\.\d*)?|\.\d+)/.exec(rest)?.[0]
    if (number === undefined) return invalid
    rest = rest.slice(number.length)
    const unit = /^[^.\d]*/.exec(rest)?.[0] ?? ''
    if (unit === '') return `time: missing unit in duration ${goQuote(text)}`
    if (!units.has(unit)) return `time: unknown unit ${goQuote(unit)} in duration ${goQuote(text)}`
    rest = rest.slice(unit.length)
  }
  return undefined
}

function rangeError(expression: string, { low, high, names }: Field): string | undefined {
  const [range = '', step, ...more] = expression.split('/')
  const [first = '', last, ...rest] = range.split('-')
  let [start, end] = [low, high]
  if (first !== '*' && first !== '?') {
    const from = numberOf(first, names)
    if (typeof from === 'string') return from
    if (rest.length > 0) return `too many hyphens: ${expression}`
    const to = last === undefined ? from : numberOf(last, names)
    if (typeof to === 'string') return to
    ;[start, end] = [from, to]
  }
  if (more.length > 0) return `too many slashes: ${expression}`
  const size = step === undefined ? 1 : numberOf(step)
  if (typeof size === 'string') return size
  if (step !== undefined && last === undefined) end = high
  if (start < low) return `beginning of range (${start}) below minimum (${low}): ${expression}`
  if (end > high) return `end of range (${end}) above maximum (${high}): ${expression}`
  if (start > end) return `beginning of range (${start}) beyond end of range (${end}): ${expression}`
  return size === 0 ? `step of range should be a positive number: ${expression}` : undefined
}

const maxInt = 2n ** 63n - 1n

/** The number, or the error in Go's words. */
function numberOf(text: string, names?: readonly string[]): number | string {
  const named = names?.indexOf(text.toLowerCase()) ?? -1
  if (named >= 0) return named + (names === months ? 1 : 0)
  const failed = `failed to parse int from ${text}: strconv.Atoi: parsing ${goQuote(text)}: `
  if (!/^[+-]?[0-9]+$/.test(text)) return `${failed}invalid syntax`
  const value = BigInt(text.replace('+', ''))
  if (value > maxInt || value < -maxInt - 1n) return `${failed}value out of range`
  return value < 0n ? `negative number (${value}) not allowed: ${text}` : Number(value)
}
