// Fields, keys and indices of values: `a.b`, `a[b]`, `a.?b`, has(a.b).
import { printValue } from '#apimachinery/cel/values/print.ts'
import {
  CelDouble,
  CelError,
  CelList,
  CelMap,
  CelObject,
  CelUint,
  isInt,
  typeNameOf,
  type Value,
} from '#apimachinery/cel/values/value.ts'

/** The value under a key. An error where there is none. */
export function lookUp(container: Value, key: Value): Value {
  const found = find(container, key)
  return found === undefined ? missing(container, key) : found
}

/** The value under a key; undefined where there is none; an error where the key can be none. */
export function find(container: Value, key: Value): Value | undefined {
  if (container instanceof CelMap) return container.find(key)
  if (container instanceof CelList) {
    const index = indexOf(key)
    if (index instanceof CelError) return index
    return index >= 0 && index < container.size ? container.at(index) : undefined
  }
  if (container instanceof CelError) return container
  if (container instanceof CelObject && typeof key === 'string')
    return container.has(key) === false ? undefined : container.get(key)
  return undefined
}

/** Whether there is a value under a key. */
export function isPresent(container: Value, key: Value): boolean | CelError {
  if (container instanceof CelObject && typeof key === 'string') return container.has(key) ?? false
  const found = find(container, key)
  return found instanceof CelError ? found : found !== undefined
}

function missing(container: Value, key: Value): Value {
  if (container instanceof CelList) return new CelError(`index out of bounds: ${printValue(key)}`)
  if (container instanceof CelObject && typeof key === 'string') {
    const value = container.get(key)
    if (value !== undefined) return value
  }
  return new CelError(`no such key: ${printValue(key)}`)
}

function indexOf(key: Value): number | CelError {
  if (isInt(key)) return Number(key)
  const number = key instanceof CelDouble ? key.value : key instanceof CelUint ? Number(key.value) : undefined
  if (number === undefined) return new CelError(`unsupported index type '${typeNameOf(key)}' in list`)
  return Number.isSafeInteger(number) ? number : new CelError(`unsupported index value ${printValue(key)} in list`)
}
