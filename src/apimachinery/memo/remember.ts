// A bounded memo: a Map of the results for recent inputs.

/**
 * Puts the result for `key` into `memo`, which is emptied first if it has `max` entries: results in use are soon
 * computed again, and a lookup costs no more than in any Map. Returns the value.
 */
export function remember<K, V>(memo: Map<K, V>, key: K, value: V, { max }: { readonly max: number }): V {
  if (memo.size >= max) memo.clear()
  memo.set(key, value)
  return value
}
