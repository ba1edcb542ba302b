// The rules of a ClusterRole with an aggregationRule: the rules of all ClusterRoles that its selectors match. Pure.
import { isJsonObject, type KubeObject } from '../../apimachinery/meta/index.ts'
import { selectorFromObject, type LabelSelectorSource } from '../../apimachinery/selector/index.ts'

/** Whether the rules of this ClusterRole are aggregated from others. */
export function isAggregated(role: KubeObject): boolean {
  return selectorsOf(role).length > 0
}

/** The rules `role` should have, given all ClusterRoles: ordered by selector, then by name, without duplicates. */
export function aggregatedRules(role: KubeObject, all: readonly KubeObject[]): unknown[] {
  const sorted = [...all].sort((a, b) => ((a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1))
  const rules = new Map<string, unknown>()
  for (const source of selectorsOf(role)) {
    const selector = selectorFromObject(source)
    for (const other of sorted) {
      if (other.metadata.name === role.metadata.name || !selector.matches(other.metadata.labels ?? {})) continue
      for (const rule of Array.isArray(other['rules']) ? (other['rules'] as unknown[]) : []) {
        const text = canonical(rule)
        if (!rules.has(text)) rules.set(text, rule)
      }
    }
  }
  return [...rules.values()]
}

/** Whether one of these ClusterRoles aggregates from a ClusterRole with these labels. */
export function aggregatesFrom(roles: readonly KubeObject[]): (labels: Readonly<Record<string, string>>) => boolean {
  const selectors = roles.flatMap(selectorsOf).map((source) => selectorFromObject(source))
  return (labels) => selectors.some((selector) => selector.matches(labels))
}

/** Whether both are the same rules in the same order; the order of fields inside a rule does not matter. */
export function sameRules(a: unknown, b: unknown): boolean {
  return canonical(a ?? []) === canonical(b ?? [])
}

function selectorsOf(role: KubeObject): LabelSelectorSource[] {
  const rule = role['aggregationRule']
  const selectors = isJsonObject(rule) ? rule['clusterRoleSelectors'] : undefined
  return Array.isArray(selectors) ? selectors.filter(isJsonObject) : []
}

/** JSON with sorted keys and without empty lists. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => {
    if (!isJsonObject(part)) return part
    const kept = Object.entries(part).filter(([, item]) => !(Array.isArray(item) && item.length === 0))
    return Object.fromEntries(kept.sort(([a], [b]) => (a < b ? -1 : 1)))
  })
}
