// APIs that an admin lets members offer to logical clusters: resources that CustomResourceDefinitions of the members
// define.
import type { Condition, DeepReadonly, JsonObject, KubeObject } from '#apimachinery/meta/index.ts'
import { conditionsSchema } from './conditions.ts'
import type { JsonSchema } from './crd.ts'

export interface ExportedApi {
  group: string
  /** The plural word. */
  resource: string
  /** Default Never. */
  move?: ExportedMove
  /** Objects that the member's controller makes for an object, and that are shown beside it. */
  related?: RelatedReference[]
}

/** How an object goes to another member, from the strictest. Never: it stays in the member where it began. */
export const exportedMoves = ['Never', 'BreakBeforeMake', 'MakeBeforeBreak'] as const
export type ExportedMove = (typeof exportedMoves)[number]

/** A Secret or ConfigMap in the namespace of the object, named by a field of the object. */
export interface RelatedReference {
  resource: 'secrets' | 'configmaps'
  /** The path of the field with the name, such as `status.credentialsRef.name`. */
  path: string
}

/** How many kinds of related objects an API may have. */
export const maxRelatedReferences = 4

/** A field that the API does not have in logical clusters, because some members do not have it. */
export interface DroppedField {
  version: string
  /** Such as `.spec.ports[].name`; `*` stands for any key of a map. */
  path: string
  /** The members that lack it. */
  members: string[]
}

/** How many dropped fields a status or an annotation lists. */
export const maxDroppedFields = 20

/** An exported API in the status of its member. */
export interface ExportedApiStatus extends Pick<ExportedApi, 'group' | 'resource'> {
  /** How many logical clusters have it with this member. */
  logicalClusters?: number
  /** The fields that logical clusters do not have, with the members that lack them. */
  droppedFields?: DroppedField[]
  /** Compatible, and Available, which implies it. */
  conditions?: Condition[]
}

/** The name of its CustomResourceDefinition. */
export function definitionName({ group, resource }: Readonly<Pick<ExportedApi, 'group' | 'resource'>>): string {
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

const groupSchema: JsonSchema = { type: 'string', minLength: 3, maxLength: 190, pattern: '^[-a-z0-9.]+\\.[-a-z0-9.]+$' }
const resourceSchema: JsonSchema = {
  type: 'string',
  minLength: 1,
  maxLength: 63,
  pattern: '^[a-z]([-a-z0-9]*[a-z0-9])?$',
}

/** The schema of the list of exported APIs in the spec of a member. */
export function exportedApisSchema(description: string): JsonSchema {
  return listSchema(description, {
    move: {
      type: 'string',
      enum: [...exportedMoves],
      default: 'Never',
      description:
        'How an object goes to another member that exports the API. Never: it stays where it began. BreakBeforeMake: it is gone there before it is created in the other one. MakeBeforeBreak: it is Ready in the other one before it goes. If members differ, the first of these words that one of them has is in force.',
    },
    related: {
      type: 'array',
      maxItems: maxRelatedReferences,
      description:
        'Secrets and ConfigMaps that the controller in the member makes for an object in its namespace, and that tenants see beside the object. A field of the object in the member names each of them.',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['resource', 'path'],
      items: {
        type: 'object',
        required: ['resource', 'path'],
        properties: {
          resource: { type: 'string', enum: ['secrets', 'configmaps'] },
          path: {
            type: 'string',
            maxLength: 253,
            pattern: '^[A-Za-z][A-Za-z0-9]*(\\.[A-Za-z][A-Za-z0-9]*)+$',
            description: 'The field with the name, such as status.credentialsRef.name.',
          },
        },
      },
    },
  })
}

/** The schema of the list of exported APIs in the status of a member. */
export function exportedApiStatusSchema(description: string): JsonSchema {
  return listSchema(description, {
    logicalClusters: {
      type: 'integer',
      format: 'int32',
      minimum: 0,
      description: 'How many logical clusters have it with this member.',
    },
    droppedFields: {
      type: 'array',
      maxItems: maxDroppedFields,
      description:
        'Fields that logical clusters do not have, because some of the members that export the API lack them.',
      'x-kubernetes-list-type': 'atomic',
      items: {
        type: 'object',
        required: ['version', 'path', 'members'],
        properties: {
          version: { type: 'string', maxLength: 63 },
          path: { type: 'string', maxLength: 1024 },
          members: { type: 'array', maxItems: 10, items: { type: 'string', maxLength: 253 } },
        },
      },
    },
    conditions: conditionsSchema(['Compatible', 'Available']),
  })
}

function listSchema(description: string, properties: Readonly<Record<string, JsonSchema>>): JsonSchema {
  return {
    type: 'array',
    description,
    maxItems: maxExportedApis,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['group', 'resource'],
    items: {
      type: 'object',
      required: ['group', 'resource'],
      properties: { group: groupSchema, resource: resourceSchema, ...properties },
    },
  }
}

/** How deeply the JSON of a definition may be nested: each level of a schema has two. */
export const maxDefinitionDepth = 220

/** The definition of an API as a member has it: the spec of its CustomResourceDefinition, or why there is none. */
export type SeenDefinition = { readonly spec: JsonObject; readonly approval?: string } | { readonly problem: string }

/** What the operator found out about the exported APIs of a member. */
export interface ExportReport {
  /** Why APIs cannot be offered, one sentence each; bounded. */
  readonly problems: readonly string[]
  /** Names of withdrawn definitions whose copies are all gone. */
  readonly withdrawn: readonly string[]
  readonly apis: readonly DeepReadonly<ApiReport>[]
}

/** One API of one member in all logical clusters. */
export interface ApiReport extends Pick<ExportedApi, 'group' | 'resource'> {
  readonly logicalClusters: number
  readonly droppedFields: readonly DroppedField[]
  /** Why some logical clusters cannot use this member for the API; absent: all can. */
  readonly incompatible?: string
}

/** The objects of an exported kind in all logical clusters. */
export interface ExportedObjects {
  readonly informer: ExportedInformer
  /** The objects by `CLUSTER|NAMESPACE`, and by name of the logical cluster. */
  readonly groups: {
    of(group: string): Iterable<DeepReadonly<KubeObject>>
    keysOf(group: string): Iterable<string>
  }
}

/** The part of an informer over all logical clusters that syncers use. */
export interface ExportedInformer {
  readonly store: { get(key: string): DeepReadonly<KubeObject> | undefined }
  onChange(
    listener: (change: {
      readonly key: string
      readonly before: DeepReadonly<KubeObject> | undefined
      readonly after: DeepReadonly<KubeObject> | undefined
    }) => void,
  ): () => void
  relist(): void
}

/**
 * What the syncer of a member needs to know about the APIs that the member exports: which, to whom, their objects, and
 * where to report.
 */
export interface MemberExports {
  readonly apis: readonly Readonly<ExportedApi>[]
  /** APIs that were exported before and are being withdrawn. */
  readonly former: readonly Readonly<ExportedApi>[]
  /** Whether the logical cluster may use the member. */
  admits(cluster: string): boolean
  /**
   * Calls the listener with a logical cluster whose admission may have changed. Returns a function that unsubscribes
   * it.
   */
  onAdmission(listener: (cluster: string) => void): () => void
  /** The definitions in logical clusters that come from members. */
  readonly definitions: ExportedInformer
  /** Resolves when the objects of the API in all logical clusters are known. */
  objectsOf(api: Readonly<ExportedApi>, signal: AbortSignal): Promise<ExportedObjects>
  /** Takes the definition that the member has now. */
  seen(name: string, definition: SeenDefinition): void
  /** Takes the names of withdrawn APIs of which no copies are left. */
  withdrawn(names: readonly string[]): void
}
