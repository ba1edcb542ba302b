// Tables that scripts/generate writes. Each is parsed on first use, to keep startup fast.
import { parseJsonText } from '#apimachinery/json/index.ts'
import { readFileSync } from 'node:fs'

/** The parsed table `NAME.json`. Nothing is cached: callers keep the result. */
export function readGenerated(name: 'resources' | 'schemas' | 'protobuf' | 'enums' | 'table-columns'): unknown {
  return parseJsonText(readFileSync(new URL(`./generated/${name}.json`, import.meta.url), 'utf8'))
}
