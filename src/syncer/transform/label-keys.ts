// matchLabelKeys and mismatchLabelKeys of pods: an API server that creates a pod adds the values of its labels to the
// selectors. The next server, which creates the copy, would add them again and then refuse the pod.
import { isJsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { termsOf } from './pod-affinity.ts'

type Labels = Readonly<Record<string, string>>
interface Expression {
  readonly key?: unknown
  readonly operator?: unknown
  readonly values?: unknown
}

/**
 * Removes from the selectors of a created pod what the server derived from its labels. Not for templates: their
 * selectors have nothing derived.
 */
export function removeDerivedSelectors(spec: Readonly<Record<string, unknown>>, labels: Labels = {}): void {
  const { affinity, topologySpreadConstraints: constraints } = spec
  for (const term of termsOf(affinity)) removeDerived(term, labels)
  for (const constraint of Array.isArray(constraints) ? (constraints as unknown[]).filter(isJsonObject) : [])
    removeDerived(constraint, labels)
}

function removeDerived(rule: Record<string, unknown>, labels: Labels): void {
  const selector = rule['labelSelector']
  if (!isJsonObject(selector) || !Array.isArray(selector['matchExpressions'])) return
  const left = [...(selector['matchExpressions'] as Expression[])]
  const derived = [
    ...namesIn(rule['matchLabelKeys']).map((key) => ({ key, operator: 'In' })),
    ...namesIn(rule['mismatchLabelKeys']).map((key) => ({ key, operator: 'NotIn' })),
  ]
  // The server appends them. A client may have excluded another value of the same label before.
  for (const { key, operator } of derived) {
    const value = labels[key]
    const index = left.findLastIndex(
      (one) =>
        one.key === key && one.operator === operator && isOnly(one.values, operator === 'In' ? undefined : value),
    )
    if (index >= 0 && value !== undefined) left.splice(index, 1)
  }
  if (left.length > 0) selector['matchExpressions'] = left as unknown as JsonValue
  else delete selector['matchExpressions']
}

/** Whether `values` has only this value. Undefined: any single value, as the pod's label may have changed since. */
function isOnly(values: unknown, value: string | undefined): boolean {
  return Array.isArray(values) && values.length === 1 && (value === undefined || values[0] === value)
}

function namesIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((name): name is string => typeof name === 'string') : []
}
