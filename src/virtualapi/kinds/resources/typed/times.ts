// metav1.Time and MicroTime: parses RFC 3339 and prints UTC, in seconds or with six digits.
import { remember } from '#apimachinery/memo/index.ts'

const pattern = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(\.\d+)?(Z|[+-]\d{2}:\d{2})$/
const secondsLayout = '2006-01-02T15:04:05Z07:00'
const microPattern = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}(Z|[+-]\d{2}:\d{2})$/
const microLayout = '2006-01-02T15:04:05.000000Z07:00'

/** The time as Go prints it, or Go's error message. */
export type GoTime = { readonly text: string } | { readonly error: string }

/**
 * The most recent times that are already in Go's form. Many objects have the same times: now, and the times of their
 * last writes.
 */
const printed = new Map<string, GoTime>()
const maxPrinted = 1000

/** Parses a metav1.Time; drops fractions of a second. */
export function goTime(text: string): GoTime {
  const known = printed.get(text)
  if (known !== undefined) return known
  const time = format(text, secondsLayout, (date) => `${date.toISOString().slice(0, 19)}Z`)
  if ('error' in time || time.text !== text) return time
  return remember(printed, text, time, { max: maxPrinted })
}

/** Parses a metav1.MicroTime. */
export function goMicroTime(text: string): GoTime {
  // Go's layout requires exactly six digits.
  const rest = text.slice(19)
  if (pattern.test(text) && !microPattern.test(text))
    return {
      error: `parsing time ${JSON.stringify(text)} as "${microLayout}": cannot parse ${JSON.stringify(rest)} as ".000000"`,
    }
  return format(text, microLayout, (date, fraction) => {
    const micros = fraction.slice(1, 7).padEnd(6, '0')
    return `${date.toISOString().slice(0, 19)}.${micros}Z`
  })
}

function format(text: string, layout: string, print: (date: Date, fraction: string) => string): GoTime {
  const match = pattern.exec(text)
  const date = new Date(text)
  if (match === null || Number.isNaN(date.getTime()))
    return {
      error: `parsing time ${JSON.stringify(text)} as "${layout}": cannot parse ${JSON.stringify(text)} as "2006"`,
    }
  return { text: print(date, match[7] ?? '') }
}
