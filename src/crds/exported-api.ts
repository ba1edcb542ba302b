// APIs that an admin lets a member offer to logical clusters: resources that CustomResourceDefinitions of the member
// define.
import type { JsonSchema } from './crd.ts'

export interface ExportedApi {
  group: string
  /** The plural word. */
  resource: string
}

/** The name of its CustomResourceDefinition. */
export function definitionName({ group, resource }: Readonly<ExportedApi>): string {
  return `${resource}.${group}`
}

/** The API whose CustomResourceDefinition has this name; undefined if it is not such a name. */
export function tryExportedApi(name: string): ExportedApi | undefined {
  const match =
    /^(?<resource>[a-z]([-a-z0-9]{0,61}[a-z0-9])?)\.(?<group>[a-z0-9]([-a-z0-9.]*[a-z0-9])?\.[-a-z0-9]*[a-z0-9])$/.exec(
      name,
    )
  const { resource, group } = match?.groups ?? {}
  return resource === undefined || group === undefined ? undefined : { resource, group }
}

/** How many APIs one member may export. */
export const maxExportedApis = 20

/** The schema of a list of exported APIs. */
export function exportedApisSchema(description: string): JsonSchema {
  return {
    type: 'array',
    description,
    maxItems: maxExportedApis,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['group', 'resource'],
    items: {
      type: 'object',
      required: ['group', 'resource'],
      properties: {
        group: { type: 'string', minLength: 3, maxLength: 190, pattern: '^[-a-z0-9.]+\\.[-a-z0-9.]+$' },
        resource: { type: 'string', minLength: 1, maxLength: 63, pattern: '^[a-z]([-a-z0-9]*[a-z0-9])?$' },
      },
    },
  }
}

/** What a syncer reports about the APIs that its member exports. */
export interface ExportReport {
  /** Why APIs cannot be offered, one sentence each; bounded. */
  readonly problems: readonly string[]
  /** Names of withdrawn definitions whose copies are all gone. */
  readonly withdrawn: readonly string[]
}

/**
 * What the syncer of a member needs to know about the APIs that the member exports: which, to whom, and where to
 * report.
 */
export interface MemberExports {
  readonly apis: readonly Readonly<ExportedApi>[]
  /** APIs that were exported before and are being withdrawn. */
  readonly former: readonly Readonly<ExportedApi>[]
  /** The logical clusters that exist, by name. */
  clusters(): readonly string[]
  /** Whether the logical cluster may use the member. */
  admits(cluster: string): boolean
  /**
   * Calls the listener with a logical cluster whose admission may have changed. Returns a function that unsubscribes
   * it.
   */
  onAdmission(listener: (cluster: string) => void): () => void
  /** Whether there is a member of this name. */
  isMember(name: string): boolean
  report(report: ExportReport): void
}
