// Parses the text form of sets of Job indexes: `0-2,5,7-9`.
import { goQuote } from '#apimachinery/text/index.ts'

/** The number of indexes, or the error message. */
export type Indexes = { readonly total: number } | { readonly error: string }

interface Interval {
  readonly first: number
  readonly last: number
}

/**
 * The number of indexes in the text, or an error message. Indexes must be below `completions`, and in increasing order.
 */
export function parseIndexes(text: string, completions: number): Indexes {
  if (text === '') return { total: 0 }
  let total = 0
  let last: number | undefined
  for (const part of text.split(',')) {
    const interval = readInterval(part, completions)
    if ('error' in interval) return interval
    if (last !== undefined && last >= interval.first) return { error: orderText(last, interval.first) }
    total += interval.last - interval.first + 1
    last = interval.last
  }
  return { total }
}

/** The first index that is in both sets; undefined if there is none. Invalid parts are skipped. */
export function firstCommonIndex(one: string, other: string, completions: number): number | undefined {
  const read = (text: string): Interval[] =>
    text === ''
      ? []
      : text.split(',').flatMap((part) => {
          const interval = readInterval(part, completions)
          return 'error' in interval ? [] : [interval]
        })
  const [some, others] = [read(one), read(other)]
  for (let i = 0, j = 0; ;) {
    const [a, b] = [some[i], others[j]]
    if (a === undefined || b === undefined) return undefined
    if (a.first <= b.last && b.first <= a.last) return Math.max(a.first, b.first)
    if (a.first <= b.first) i++
    else j++
  }
}

const orderText = (previous: number, current: number): string =>
  `non-increasing order, previous: ${previous}, current: ${current}`

function readInterval(text: string, completions: number): Interval | { error: string } {
  const parts = text.split('-', 3)
  if (parts.length > 2)
    return {
      error: `the fragment ${goQuote(text)} violates the requirement that an index interval can have at most two parts separated by '-'`,
    }
  const numbers: number[] = []
  for (const part of parts) {
    if (!/^[+]?\d{1,15}$/.test(part)) return { error: `cannot convert string to integer for index: ${goQuote(part)}` }
    if (Number(part) >= completions) return { error: `too large index: ${goQuote(part)}` }
    numbers.push(Number(part))
  }
  const [first = 0, last = first] = numbers
  if (numbers.length === 2 && first >= last) return { error: orderText(first, last) }
  return { first, last }
}
