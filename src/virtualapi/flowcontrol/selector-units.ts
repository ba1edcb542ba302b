// The number of watches that a watch counts for: one, or more if its selectors take more memory than other watches do.

/** Bytes that an open watch takes, without its selectors. */
export const watchBytes = 20 * 1024
/**
 * The memory of a selector: bytes for each term, and the number of copies of its text (parsed, as it came, in the
 * request).
 */
const [termBytes, textCopies] = [160, 4]
/** Shorter selectors, in characters, fit into the memory that a watch counts for anyway. */
const shortSelector = 1024

/** The selectors of a request as one text, which is the same for equal selectors; undefined if they are short. */
export function longSelector(query: Pick<URLSearchParams, 'get'>): string | undefined {
  const labels = query.get('labelSelector') ?? ''
  const fields = query.get('fieldSelector') ?? ''
  const shard = query.get('shardSelector') ?? ''
  return labels.length + fields.length + shard.length < shortSelector ? undefined : `${labels}&${fields}&${shard}`
}

/** The units that the selectors count for, in addition to the watch itself. */
export function unitsOfSelector(selector: string): number {
  let terms = 1
  for (let at = selector.indexOf(','); at >= 0; at = selector.indexOf(',', at + 1)) terms++
  return Math.ceil((terms * termBytes + selector.length * textCopies) / watchBytes)
}
