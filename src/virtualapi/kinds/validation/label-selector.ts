// Validation and matching of metav1.LabelSelector.
import type { V1LabelSelector } from '@kubernetes/client-node'
import { fieldForbidden, fieldInvalid, fieldRequired, labelValueErrors } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { labels, qualifiedName } from './values.ts'

export type LabelSelector = Data<V1LabelSelector>

/** Validation errors of a selector; none if it is absent. */
export function labelSelectorCauses(path: string, selector: LabelSelector | undefined | null): StatusCause[] {
  if (!selector) return []
  const causes = labels(`${path}.matchLabels`, selector.matchLabels)
  for (const [index, { key, operator, values = [] }] of (selector.matchExpressions ?? []).entries()) {
    const at = `${path}.matchExpressions[${index}]`
    const list = values
    if (operator === 'In' || operator === 'NotIn') {
      if (list.length === 0)
        causes.push(fieldRequired(`${at}.values`, "must be specified when `operator` is 'In' or 'NotIn'"))
    } else if (operator === 'Exists' || operator === 'DoesNotExist') {
      if (list.length > 0)
        causes.push(
          fieldForbidden(`${at}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
        )
    } else causes.push(fieldInvalid(`${at}.operator`, operator, 'not a valid selector operator'))
    causes.push(...qualifiedName(`${at}.key`, key))
    for (const [i, value] of list.entries())
      for (const text of labelValueErrors(value)) causes.push(fieldInvalid(`${at}.values[${i}]`, value, text))
  }
  return causes
}

/** True if the selector selects everything. */
export function isEmptySelector(selector: LabelSelector): boolean {
  return Object.keys(selector.matchLabels ?? {}).length === 0 && (selector.matchExpressions?.length ?? 0) === 0
}

/** True if a valid selector selects these labels. */
export function selects(selector: LabelSelector, of: Readonly<Record<string, string>> = {}): boolean {
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) if (of[key] !== value) return false
  return (selector.matchExpressions ?? []).every(({ key, operator, values }) => {
    const value = Object.hasOwn(of, key) ? of[key] : undefined
    if (operator === 'Exists') return value !== undefined
    if (operator === 'DoesNotExist') return value === undefined
    const listed = value !== undefined && (values ?? []).includes(value)
    return operator === 'In' ? listed : !listed
  })
}
