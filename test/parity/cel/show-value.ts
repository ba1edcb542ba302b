// Writes a value in the form in which test/programs/cel writes it.
import { printDouble } from '#apimachinery/cel/values/print.ts'
import { printTimestamp } from '#apimachinery/cel/values/times.ts'
import {
  CelDouble,
  CelDuration,
  CelList,
  CelMap,
  CelObject,
  CelOptional,
  CelTimestamp,
  CelTypeValue,
  CelUint,
  JsonRoom,
  mutationJson,
  ObjectValue,
  PatchValue,
  type Value,
} from '#apimachinery/cel/index.ts'

/** One canonical text for each value; entries of maps in the order of their text. */
export function showValue(value: Value): string {
  if (value === null) return 'null'
  if (typeof value === 'string')
    return JSON.stringify(value)
      .replaceAll('\u2028', '\\u2028')
      .replaceAll('\u2029', '\\u2029')
      .replaceAll(/[<>&]/g, (char) => `\\u00${char.charCodeAt(0).toString(16)}`)
  if (typeof value !== 'object') return String(value)
  if (value instanceof CelUint) return `${String(value.value)}u`
  if (value instanceof CelDouble) return `double(${printDouble(value.value)})`
  if (value instanceof Uint8Array) return `b${Buffer.from(value).toString('hex')}`
  if (value instanceof CelTimestamp) return `timestamp(${printTimestamp(value)})`
  if (value instanceof CelDuration) return `duration(${String(value.nanos)})`
  if (value instanceof CelOptional)
    return value.value === undefined ? 'optional.none()' : `optional.of(${showValue(value.value)})`
  if (value instanceof CelTypeValue) return `type(${value.name})`
  if (value instanceof CelList)
    return `[${Array.from({ length: value.size }, (_, i) => showValue(value.at(i))).join(',')}]`
  if (value instanceof CelMap) {
    const entries = value.keys().map((key) => `${showValue(key)}:${showValue(value.find(key) ?? null)}`)
    return `{${entries.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))).join(',')}}`
  }
  if (value instanceof ObjectValue)
    return `${value.typeName}${JSON.stringify(mutationJson(value, new JsonRoom(1_000_000)))}`
  if (value instanceof PatchValue) {
    const texts = [value.op, value.path, value.from].map((text) => JSON.stringify(text)).join(' ')
    return `JSONPatch(${texts}${value.value === undefined ? '' : ` ${showValue(value.value)}`})`
  }
  return value instanceof CelObject && 'text' in value ? `${value.typeName}(${String(value.text)})` : 'error'
}
