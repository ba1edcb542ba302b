// matchLabelKeys and mismatchLabelKeys: merges the values of the pod's own labels into the selectors of its
// constraints.
import type { V1LabelSelector } from '@kubernetes/client-node'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import type { PodSpec } from '#virtualapi/kinds/validation/pod-spec.ts'

type Labels = Readonly<Record<string, string>>

interface Rule {
  labelSelector?: Data<V1LabelSelector>
  matchLabelKeys?: string[]
  mismatchLabelKeys?: string[]
}

/** Adds a requirement to labelSelector for each key in matchLabelKeys and mismatchLabelKeys. Mutates `spec`. */
export function mergeLabelKeys({ affinity, topologySpreadConstraints = [] }: PodSpec, labels: Labels): void {
  for (const some of [affinity?.podAffinity, affinity?.podAntiAffinity]) {
    for (const { podAffinityTerm } of some?.preferredDuringSchedulingIgnoredDuringExecution ?? [])
      merge(podAffinityTerm, labels)
    for (const term of some?.requiredDuringSchedulingIgnoredDuringExecution ?? []) merge(term, labels)
  }
  for (const constraint of topologySpreadConstraints) merge(constraint, labels)
}

function merge({ labelSelector, matchLabelKeys = [], mismatchLabelKeys = [] }: Rule, labels: Labels): void {
  // An absent selector selects nothing, so there is nothing to add to.
  if (labelSelector === undefined) return
  const added = [
    ...matchLabelKeys.map((key) => ({ key, operator: 'In' })),
    ...mismatchLabelKeys.map((key) => ({ key, operator: 'NotIn' })),
  ].flatMap(({ key, operator }) => {
    const value = Object.hasOwn(labels, key) ? labels[key] : undefined
    return value === undefined ? [] : [{ key, operator, values: [value] }]
  })
  if (added.length > 0) labelSelector.matchExpressions = [...(labelSelector.matchExpressions ?? []), ...added]
}
