// Parser of CronJob schedules: five fields, or a descriptor such as @hourly.

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

/** The error of upstream's cron parser for a schedule; undefined if it is valid. */
export function scheduleError(schedule: string): string | undefined {
  const text = schedule.replace(/^(CRON_)?TZ=\S+\s+/, '').trim()
  if (text.startsWith('@')) {
    if (words.has(text) || /^@every ([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$/.test(text)) return undefined
    return `unrecognized descriptor: ${text}`
  }
  const parts = text.split(/\s+/)
  if (parts.length !== fields.length) return `expected exactly 5 fields, found ${parts.length}: [${parts.join(' ')}]`
  for (const [index, part] of parts.entries())
    for (const range of part.split(',')) {
      const field = fields[index]
      const wrong = field === undefined ? undefined : rangeError(range, field)
      if (wrong !== undefined) return wrong
    }
  return undefined
}

function rangeError(expression: string, { low, high, names }: Field): string | undefined {
  const [range = '', step, ...more] = expression.split('/')
  const [first = '', last, ...rest] = range.split('-')
  if (more.length > 0) return `too many slashes: ${expression}`
  if (rest.length > 0) return `too many hyphens: ${expression}`
  const numberOf = (text: string): number => {
    const named = names?.indexOf(text.toLowerCase()) ?? -1
    return named >= 0 ? named + (names?.length === 12 ? 1 : 0) : /^[0-9]+$/.test(text) ? Number(text) : NaN
  }
  if (step !== undefined && !/^[0-9]+$/.test(step))
    return `failed to parse int from ${step}: strconv.Atoi: parsing ${JSON.stringify(step)}: invalid syntax`
  if (first === '*' || first === '?')
    return last === undefined ? zeroStep(step, expression) : `too many hyphens: ${expression}`
  const start = numberOf(first)
  const end = last === undefined ? (step === undefined ? start : high) : numberOf(last)
  for (const [text, value] of [
    [first, start],
    [last ?? '', end],
  ] as const)
    if (Number.isNaN(value))
      return `failed to parse int from ${text}: strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`
  if (start < low) return `beginning of range (${start}) below minimum (${low}): ${expression}`
  if (end > high) return `end of range (${end}) above maximum (${high}): ${expression}`
  if (start > end) return `beginning of range (${start}) beyond end of range (${end}): ${expression}`
  return zeroStep(step, expression)
}

function zeroStep(step: string | undefined, expression: string): string | undefined {
  return step !== undefined && Number(step) === 0
    ? `step of range should be a positive number: ${expression}`
    : undefined
}
