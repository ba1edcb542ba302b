// Tables that scripts/generate writes: read when first asked for, because a start of the program pays for every parsed byte.
import { readFileSync } from 'node:fs'

/** The parsed table `NAME.json`. Callers keep what they make of it; a second call reads again. */
export function readGenerated(name: 'resources' | 'schemas' | 'protobuf' | 'enums' | 'table-columns'): unknown {
  return JSON.parse(readFileSync(new URL(`./generated/${name}.json`, import.meta.url), 'utf8'))
}
