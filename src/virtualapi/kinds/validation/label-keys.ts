// Validation of matchLabelKeys and mismatchLabelKeys: keys of labels whose values are taken from the pod itself.
import { qualifiedName } from './basic-rules.ts'
import type { LabelSelector } from './label-selector.ts'
import { each, forbidden, given, type Rule } from './vocabulary.ts'

interface Keys {
  readonly matchLabelKeys?: readonly string[]
  readonly mismatchLabelKeys?: readonly string[]
  readonly labelSelector?: LabelSelector
}

const names = each(qualifiedName)
const withoutSelector = given(forbidden('must not be specified when labelSelector is not set'))

/** The lists of a term: keys must be valid, need a labelSelector, and may occur only once. */
export const labelKeys: Rule<Keys> = (
  { matchLabelKeys: match, mismatchLabelKeys: mismatch, labelSelector },
  report,
) => {
  if (!match?.length && !mismatch?.length) return
  const list = labelSelector === undefined ? withoutSelector : names
  report.at('matchLabelKeys', list, match)
  report.at('mismatchLabelKeys', list, mismatch)
  // The server adds each key to the selector once. A key that occurs twice there was also set by the client.
  const seen = new Set(Object.keys(labelSelector?.matchLabels ?? {}))
  const indexes = new Map(match?.map((key, index) => [key, index]))
  const others = new Set(mismatch)
  for (const { key } of labelSelector?.matchExpressions ?? []) {
    const index = indexes.get(key)
    if (index !== undefined && seen.has(key))
      report.invalid(`[${index}]`, key, 'exists in both matchLabelKeys and labelSelector')
    seen.add(key)
  }
  for (const [index, key] of (match ?? []).entries())
    if (others.has(key))
      report.invalid(`matchLabelKeys[${index}]`, key, 'exists in both matchLabelKeys and mismatchLabelKeys')
}
