// APIs that an admin lets a member offer to logical clusters: resources that CustomResourceDefinitions of the member define.
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

/** The API with this name of a CustomResourceDefinition; undefined if it is none. */
export function tryExportedApi(name: string): ExportedApi | undefined {
  const match =
    /^(?<resource>[a-z]([-a-z0-9]{0,61}[a-z0-9])?)\.(?<group>[a-z0-9]([-a-z0-9.]*[a-z0-9])?\.[-a-z0-9]*[a-z0-9])$/.exec(
      name,
    )
  const { resource, group } = match?.groups ?? {}
  return resource === undefined || group === undefined ? undefined : { resource, group }
}

/** APIs that one member may export. */
export const maxExportedApis = 20

/** The schema of a list of them. */
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

/** What a syncer says of the APIs that its member exports. */
export interface ExportReport {
  /** What stands in the way, one sentence each; bounded. */
  readonly problems: readonly string[]
  /** Names of definitions of which nothing is left. */
  readonly withdrawn: readonly string[]
}

/** The APIs that a member exports, as its syncer needs them: which, to whom, and where to say what came of it. */
export interface MemberExports {
  readonly apis: readonly Readonly<ExportedApi>[]
  /** Exported before, and being withdrawn. */
  readonly former: readonly Readonly<ExportedApi>[]
  /** The logical clusters that exist, by name. */
  clusters(): readonly string[]
  /** Whether the logical cluster may use the member. */
  admits(cluster: string): boolean
  /** Calls the listener with a logical cluster whose admission may have changed. Returns the function that ends it. */
  onAdmission(listener: (cluster: string) => void): () => void
  /** Whether there is a member of this name. */
  isMember(name: string): boolean
  report(report: ExportReport): void
}
