// The limits of a body for objects that others than the client make: webhooks, policies and conversions. A tenant's
// server must not do to the others what a tenant's request may not.
import { defaultMaxJsonBytes, defaultMaxJsonDepth, defaultMaxJsonValues } from '#apimachinery/json/index.ts'

export interface ObjectSize {
  readonly values: number
  /** Of its JSON, or a little less. */
  readonly bytes: number
}

/** Bytes of JSON around a name or a value: quotes, a colon, a comma. */
const aroundBytes = 2

/**
 * The size of an object, or a text that says which limit of a body it exceeds. `before` may exceed it already, by its
 * defaults or by what was stored long ago. `maxGrown`: the most values that it may have if it has more than twice those
 * of `before`.
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

/** Undefined for one with too many levels. */
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
