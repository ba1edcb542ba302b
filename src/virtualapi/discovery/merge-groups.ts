// Groups of this server together with the groups of aggregated servers, in the order of the priorities of APIServices.
import { compareVersions } from '#apimachinery/meta/index.ts'

export interface GroupOf<V> {
  readonly name: string
  /** The preferred version first. */
  readonly versions: readonly V[]
}

/** Priorities that decide the order: higher numbers first. */
export interface Priorities {
  /** groupPriorityMinimum of the version. The highest value of all versions of a group counts. */
  readonly groupPriority: number
  readonly versionPriority: number
}

/** The group of APIServices. It comes first, as in kube-aggregator, so that no other group can hide it. */
const firstGroup = 'apiregistration.k8s.io'

/**
 * Merges versions of aggregated servers into the groups; groups are sorted by priority and name, versions by priority
 * and by Kubernetes' order of versions.
 */
export function mergeGroups<V extends { readonly version: string }>(
  local: readonly GroupOf<V>[],
  remote: readonly { readonly group: string; readonly value: V }[],
  prioritiesOf: (group: string, version: string) => Priorities,
): GroupOf<V>[] {
  const groups = new Map(local.map(({ name, versions }) => [name, [...versions]]))
  for (const { group, value } of remote) {
    const versions = groups.get(group) ?? []
    groups.set(group, [...versions.filter(({ version }) => version !== value.version), value])
  }
  const merged = [...groups].map(([name, versions]) => {
    const priority = (version: string): number => prioritiesOf(name, version).versionPriority
    versions.sort((a, b) => priority(b.version) - priority(a.version) || compareVersions(a.version, b.version))
    const highest = Math.max(...versions.map(({ version }) => prioritiesOf(name, version).groupPriority))
    return { name, versions, priority: name === firstGroup ? Infinity : highest }
  })
  merged.sort((a, b) => (a.priority === b.priority ? compareText(a.name, b.name) : b.priority - a.priority))
  return merged.map(({ name, versions }) => ({ name, versions }))
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
