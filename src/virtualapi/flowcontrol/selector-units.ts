// The number of watches that a watch counts for: one, and more if its selectors take more memory than a watch does
// otherwise.

/** Bytes that an open watch takes, beside its selectors. */
export const watchBytes = 20 * 1024
/** Bytes of a selector: so many for each term, and its text several times (parsed, as it came, in the request). */
const [termBytes, textCopies] = [160, 4]
/** Shorter ones take no more than what a watch is taken for anyway. */
const shortSelector = 1024

/** The selectors of a request as one text, by which equal ones are known; undefined: they are short. */
export function longSelector(query: Pick<URLSearchParams, 'get'>): string | undefined {
  const labels = query.get('labelSelector') ?? ''
  const fields = query.get('fieldSelector') ?? ''
  return labels.length + fields.length < shortSelector ? undefined : `${labels}&${fields}`
}

/** The units of the selectors beside the watch itself. */
export function unitsOfSelector(selector: string): number {
  let terms = 1
  for (let at = selector.indexOf(','); at >= 0; at = selector.indexOf(',', at + 1)) terms++
  return Math.ceil((terms * termBytes + selector.length * textCopies) / watchBytes)
}
