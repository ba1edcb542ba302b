// Affinity to pods of other namespaces: in a member these namespaces have other names and labels, and those of other
// logical clusters must not be selected.
import { isJsonObject, type ClusterId } from '#apimachinery/meta/index.ts'
import { downstreamNamespace } from '#crds/index.ts'
import { namespaceSelectorDown } from './dependents-down.ts'
import type { PodSpec } from './pod-types.ts'

/** Makes the terms of the pod match only namespaces of its logical cluster. Returns whether any term was changed. */
export function confineAffinity({ affinity }: PodSpec, clusterId: ClusterId): boolean {
  let changed = false
  for (const term of termsOf(affinity)) {
    const { namespaces, namespaceSelector } = term
    if (Array.isArray(namespaces) && namespaces.length > 0) {
      term['namespaces'] = namespaces.map((name) => downstreamNamespace(clusterId, String(name)))
      changed = true
    }
    if (isJsonObject(namespaceSelector)) {
      term['namespaceSelector'] = namespaceSelectorDown(namespaceSelector, clusterId)
      changed = true
    }
  }
  return changed
}

/** The terms of podAffinity and podAntiAffinity. */
export function termsOf(affinity: unknown): Record<string, unknown>[] {
  if (!isJsonObject(affinity)) return []
  return [affinity['podAffinity'], affinity['podAntiAffinity']].filter(isJsonObject).flatMap((kind) => {
    const required = listOf(kind['requiredDuringSchedulingIgnoredDuringExecution'])
    const preferred = listOf(kind['preferredDuringSchedulingIgnoredDuringExecution'])
    return [...required, ...preferred.map((one) => one['podAffinityTerm']).filter(isJsonObject)]
  })
}

const listOf = (value: unknown): Record<string, unknown>[] => (Array.isArray(value) ? value.filter(isJsonObject) : [])
