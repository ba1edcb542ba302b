// Applies the limits of a request body to objects that webhooks, policies and conversions make, so that a tenant's
// server cannot slow down other tenants more than a tenant's request can.
import { defaultMaxJsonBytes, defaultMaxJsonDepth, defaultMaxJsonValues } from '#apimachinery/json/index.ts'

export interface ObjectSize {
  readonly values: number
  /** The bytes of the object's JSON, or a little less. */
  readonly bytes: number
}

/** Bytes of JSON around a name or a value: quotes, a colon, a comma. */
const aroundBytes = 2

/**
 * The size of an object, or a text that says which limit of a body it exceeds. An object may exceed a limit only as far
 * as `before` does; `before` may exceed it because of defaults or because it was stored before the limit existed.
 * `maxGrown`: the most values of an object that has more than twice the values of `before`.
 */
export function sizeWithin(
  object: object,
  before: object,
  { maxGrown = Infinity }: { readonly maxGrown?: number } = {},
): ObjectSize | string {
  const size = sizeOf(object)
  if (size === undefined) return `limit is ${defaultMaxJsonDepth} levels`
  if (size.values > maxGrown && size.values > 2 * (sizeOf(before)?.values ?? 0))
    return `limit is ${maxGrown} values, or twice those that it had`
  if (size.values <= defaultMaxJsonValues && size.bytes <= defaultMaxJsonBytes) return size
  const { values, bytes } = sizeOf(before) ?? { values: 0, bytes: 0 }
  if (size.values > Math.max(defaultMaxJsonValues, values)) return `limit is ${defaultMaxJsonValues} values`
  if (size.bytes > Math.max(defaultMaxJsonBytes, bytes)) return `limit is ${defaultMaxJsonBytes} bytes`
  return size
}

/** The size of an object; undefined if it has too many levels. */
function sizeOf(object: object): ObjectSize | undefined {
  let [values, bytes] = [0, 0]
  const pending: { readonly value: unknown; readonly depth: number }[] = [{ value: object, depth: 1 }]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { value, depth } = next
    values++
    bytes += aroundBytes
    if (typeof value === 'string') bytes += value.length
    if (typeof value !== 'object' || value === null) continue
    if (depth > defaultMaxJsonDepth) return undefined
    if (Array.isArray(value)) for (const item of value) pending.push({ value: item, depth: depth + 1 })
    else
      for (const [name, item] of Object.entries(value)) {
        bytes += name.length + aroundBytes
        pending.push({ value: item, depth: depth + 1 })
      }
  }
  return { values, bytes }
}
