// The resource table arranged for discovery: groups, their versions in order of preference, and the resources of each.
import { compareVersions, type GroupVersion } from '#apimachinery/meta/index.ts'
import type { ResourceInfo } from '#virtualapi/kinds/resources/resource-info.ts'

export interface ServedVersion extends GroupVersion {
  readonly resources: readonly ResourceInfo[]
}
export interface ServedGroup {
  readonly group: string
  /** The preferred version first. */
  readonly versions: readonly ServedVersion[]
}

/**
 * Groups the served resources. Built-in groups keep the order of the table, and so do their versions; custom groups
 * follow by name, with versions sorted as Kubernetes does: stable before beta before alpha, higher numbers first.
 */
export function servedGroups(infos: readonly ResourceInfo[]): ServedGroup[] {
  const groups = new Map<string, Map<string, ResourceInfo[]>>()
  const builtInGroups = new Set<string>()
  for (const info of infos) {
    if (info.builtIn) builtInGroups.add(info.group)
    const versions = groups.get(info.group) ?? new Map<string, ResourceInfo[]>()
    groups.set(info.group, versions)
    const rows = versions.get(info.version) ?? []
    versions.set(info.version, rows)
    rows.push(info)
  }
  const served = [...groups].map(([group, versions]) => servedGroup(group, versions, builtInGroups.has(group)))
  const custom = served.filter(({ group }) => !builtInGroups.has(group))
  custom.sort((a, b) => compareText(a.group, b.group))
  return [...served.filter(({ group }) => builtInGroups.has(group)), ...custom]
}

function servedGroup(group: string, versions: Map<string, ResourceInfo[]>, builtIn: boolean): ServedGroup {
  const list = [...versions].map(([version, resources]) => ({
    group,
    version,
    resources: resources.toSorted((a, b) => compareText(a.resource, b.resource)),
  }))
  if (!builtIn) list.sort((a, b) => compareVersions(a.version, b.version))
  return { group, versions: list }
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
