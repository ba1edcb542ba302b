// Regular expressions from users: Go's syntax, linear time, compiled once per text.
import { LRUCache } from 'lru-cache'
import { RE2JS } from 're2js'
import { estimatePatternSize } from './pattern-size.ts'

export interface Pattern {
  /** True if the pattern matches anywhere in the value. Takes up to `size` steps per character. */
  readonly test: (value: string) => boolean
  readonly regex: RE2JS
  /** Number of compiled instructions. */
  readonly size: number
}

/** The size limit of one pattern, in instructions, which take some 50 ms to compile. Go's limit is three million. */
const maxPatternSize = 10_000
/** Maximum number of instructions of all compiled patterns that are kept, some 100 bytes each. */
const maxKeptSize = 1_000_000

const compiled = new LRUCache<string, Pattern | { error: string }>({
  max: 2000,
  maxSize: maxKeptSize,
  sizeCalculation: (entry, pattern) => ('size' in entry ? entry.size : 1) + pattern.length,
})

/** The compiled pattern, or the syntax error. A pattern that is too large is not compiled. */
export function compilePattern(pattern: string): Pattern | { error: string } {
  let entry = compiled.get(pattern)
  if (entry === undefined) compiled.set(pattern, (entry = compile(pattern)))
  return entry
}

function compile(pattern: string): Pattern | { error: string } {
  if (estimatePatternSize(pattern) > maxPatternSize) return { error: 'error parsing regexp: expression too large' }
  try {
    const re = RE2JS.compile(pattern)
    return { test: (value) => re.matcher(value).find(), regex: re, size: re.programSize() }
  } catch (error) {
    return { error: error instanceof Error ? error.message : 'invalid pattern' }
  }
}
