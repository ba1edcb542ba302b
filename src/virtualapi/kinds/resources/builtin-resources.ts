// The rows of the resource table that every logical cluster has: the resources that Kubernetes serves by default, in
// stable versions.
import { apiVersionOf, type GroupVersionKind, type GroupVersionResource } from '#apimachinery/meta/index.ts'
import { readGenerated } from './generated-facts.ts'
import type { ResourceInfo } from './resource-info.ts'

interface Tables {
  readonly rows: readonly ResourceInfo[]
  readonly byResource: ReadonlyMap<string, ResourceInfo>
  readonly byKind: ReadonlyMap<string, ResourceInfo>
  readonly groups: ReadonlySet<string>
}

let tables: Tables | undefined

/** All built-in resources, in the order of discovery: groups by priority, a group's preferred version first. */
export function builtInResources(): readonly ResourceInfo[] {
  return loaded().rows
}

/** The row of a resource such as `apps/v1 deployments`; undefined if it is not built in. */
export function builtInResource({ group, version, resource }: GroupVersionResource): ResourceInfo | undefined {
  return loaded().byResource.get(keyOf({ group, version }, resource))
}

/**
 * The row of the resource whose objects have this kind; undefined also for kinds that only subresources use, such as
 * Scale.
 */
export function builtInResourceOfKind({ group, version, kind }: GroupVersionKind): ResourceInfo | undefined {
  return loaded().byKind.get(keyOf({ group, version }, kind))
}

/** True for a group with built-in resources, the core group included. */
export function isBuiltInGroup(group: string): boolean {
  return loaded().groups.has(group)
}

function loaded(): Tables {
  if (tables !== undefined) return tables
  const rows = readGenerated('resources') as ResourceInfo[]
  tables = {
    rows,
    byResource: new Map(rows.map((row) => [keyOf(row, row.resource), row])),
    byKind: new Map(rows.map((row) => [keyOf(row, row.kind), row])),
    groups: new Set(rows.map(({ group }) => group)),
  }
  return tables
}

function keyOf(gv: { group: string; version: string }, name: string): string {
  return `${apiVersionOf(gv)}/${name}`
}
