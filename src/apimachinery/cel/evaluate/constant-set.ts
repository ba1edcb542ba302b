// `x in [1, 2, 3]`: membership in a constant list of scalars takes one step, whatever the length of the list.
import { EntryMap } from '#apimachinery/cel/values/collections.ts'
import { CelDouble, CelList, CelUint, isInt, type Value } from '#apimachinery/cel/values/value.ts'

/** The membership test of a constant list; false for an empty one; undefined where it is no list of scalars. */
export function isSetOfConstants(list: Value | undefined): ((value: Value) => Value) | false | undefined {
  if (!(list instanceof CelList)) return undefined
  if (list.size === 0) return false
  const set = new EntryMap()
  for (let i = 0; i < list.size; i++) {
    const item = list.at(i)
    if (!isScalar(item)) return undefined
    set.set(item, true)
  }
  return (value) => isScalar(value) && set.find(value) !== undefined
}

function isScalar(value: Value): boolean {
  return (
    typeof value === 'string' ||
    typeof value === 'boolean' ||
    isInt(value) ||
    value instanceof CelUint ||
    value instanceof CelDouble
  )
}
