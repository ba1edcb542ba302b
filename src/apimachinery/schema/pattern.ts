// Regular expressions from users: Go's syntax, linear time, compiled once per text.
import { LRUCache } from 'lru-cache'
import { RE2JS } from 're2js'

export interface Pattern {
  /** True if the pattern matches anywhere in the value. Takes up to `size` steps per character. */
  readonly test: (value: string) => boolean
  /** Number of compiled instructions. */
  readonly size: number
}

const compiled = new LRUCache<string, Pattern | { error: string }>({ max: 2000 })

/** The compiled pattern, or the syntax error. */
export function compilePattern(pattern: string): Pattern | { error: string } {
  let entry = compiled.get(pattern)
  if (entry === undefined) {
    try {
      const re = RE2JS.compile(pattern)
      entry = { test: (value) => re.matcher(value).find(), size: re.programSize() }
    } catch (error) {
      entry = { error: error instanceof Error ? error.message : 'invalid pattern' }
    }
    compiled.set(pattern, entry)
  }
  return entry
}
