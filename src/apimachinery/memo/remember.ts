// A memo with a bound: a Map of what was computed for the last inputs.

/**
 * Puts what was computed for `key` into `memo`, which is emptied first if it has `max` of them: what is in use is soon
 * there again, and to find it costs no more than in any Map. Returns the value.
 */
export function remember<K, V>(memo: Map<K, V>, key: K, value: V, { max }: { readonly max: number }): V {
  if (memo.size >= max) memo.clear()
  memo.set(key, value)
  return value
}
