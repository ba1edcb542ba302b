// Regular expressions from users: Go's syntax, linear time, compiled once per text.
import { LRUCache } from 'lru-cache'
import { RE2JS } from 're2js'

const compiled = new LRUCache<string, { test: (value: string) => boolean } | { error: string }>({ max: 2000 })

/** The pattern as a test (found anywhere in the value), or what is wrong with it. */
export function compilePattern(pattern: string): { test: (value: string) => boolean } | { error: string } {
  let entry = compiled.get(pattern)
  if (entry === undefined) {
    try {
      const re = RE2JS.compile(pattern)
      entry = { test: (value) => re.matcher(value).find() }
    } catch (error) {
      entry = { error: error instanceof Error ? error.message : 'invalid pattern' }
    }
    compiled.set(pattern, entry)
  }
  return entry
}
