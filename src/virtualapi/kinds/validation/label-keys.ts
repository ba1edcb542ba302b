// Validation of matchLabelKeys and mismatchLabelKeys: keys of labels whose values are taken from the pod itself.
import { fieldForbidden, fieldInvalid } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { LabelSelector } from './label-selector.ts'
import { qualifiedName } from './values.ts'

interface Keys {
  readonly matchLabelKeys?: readonly string[]
  readonly mismatchLabelKeys?: readonly string[]
  readonly labelSelector?: LabelSelector
}

/** Errors for the lists in the term at `path`: keys must be valid, need a labelSelector, and may occur only once. */
export function labelKeysCauses(path: string, keys: Keys): StatusCause[] {
  const { matchLabelKeys: match = [], mismatchLabelKeys: mismatch = [], labelSelector } = keys
  if (match.length === 0 && mismatch.length === 0) return []
  const others = new Set(mismatch)
  return [
    ...namesCauses(`${path}.matchLabelKeys`, match, labelSelector),
    ...namesCauses(`${path}.mismatchLabelKeys`, mismatch, labelSelector),
    ...(labelSelector === undefined ? [] : repeatedCauses(path, match, labelSelector)),
    ...match.flatMap((key, index) =>
      others.has(key)
        ? [fieldInvalid(`${path}.matchLabelKeys[${index}]`, key, 'exists in both matchLabelKeys and mismatchLabelKeys')]
        : [],
    ),
  ]
}

function namesCauses(path: string, keys: readonly string[], selector: LabelSelector | undefined): StatusCause[] {
  if (keys.length === 0) return []
  if (selector === undefined) return [fieldForbidden(path, 'must not be specified when labelSelector is not set')]
  return keys.flatMap((key, index) => qualifiedName(`${path}[${index}]`, key))
}

/** The server adds each key to the selector once. A key that occurs twice there was also set by the client. */
function repeatedCauses(path: string, keys: readonly string[], selector: LabelSelector): StatusCause[] {
  const indexes = new Map(keys.map((key, index) => [key, index]))
  const seen = new Set(Object.keys(selector.matchLabels ?? {}))
  return (selector.matchExpressions ?? []).flatMap(({ key }) => {
    const index = indexes.get(key)
    const repeated = index !== undefined && seen.has(key)
    seen.add(key)
    return repeated ? [fieldInvalid(`${path}[${index}]`, key, 'exists in both matchLabelKeys and labelSelector')] : []
  })
}
