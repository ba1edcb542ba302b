// The definition of one served resource version, built-in or from a CustomResourceDefinition.
import { groupResourceText, type JsonObject, type KubeObject, type Int64 } from '#apimachinery/meta/index.ts'
import type { FieldFilter } from '#apimachinery/managed-fields/index.ts'
import type { SchemaNode } from '#apimachinery/schema/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { WorkBudget } from '#apimachinery/work-budget/index.ts'
import type { ClusterObjects } from '#store/watch-cache/index.ts'
import type { ViewRule } from '#virtualapi/request/request-view.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { AllocationFor } from './allocation.ts'
import type { UpgradeBytes } from './upgrade-on-read.ts'
import type { NameCheck } from './names.ts'
import type { MetaCheck } from './meta-check.ts'
import type { ResourceInfo } from './resource-info.ts'

/** The data of a request that a hook may read besides the object. */
export interface RequestContext {
  readonly cluster: LogicalCluster
  readonly objects: ClusterObjects
  readonly user: UserInfo
  readonly dryRun: boolean
  /** The manager that metadata.managedFields records for the written fields; may be empty. */
  readonly fieldManager: string
  /** Texts for `Warning` headers; hooks append to it. */
  readonly warnings: string[]
  /** The work that the request may still cost. Hooks charge loops over data that tenants wrote. */
  readonly work: WorkBudget
  /** Wall clock in milliseconds since the epoch. */
  readonly now: number
  /** CreateOptions, UpdateOptions or DeleteOptions of the request, as webhooks get them. */
  readonly options?: JsonObject
  /** What the view of an export, through which the request came, lets it do with the resource. */
  readonly rule?: ViewRule
  /** True: the endpoint has called the webhooks for the request itself, so they are not called for its writes. */
  readonly admitted?: boolean
  /** Adds an annotation to the audit line of the request. */
  readonly annotate?: (key: string, value: string) => void
  /**
   * Settles as `response`. Meanwhile the request does not count in the process-wide limit, because it waits for another
   * program.
   */
  readonly whileWaiting?: <T>(response: Promise<T>) => Promise<T>
  /** Awaited before more work for the request, so that other requests are served; undefined: no need to wait. */
  readonly turn?: () => Promise<void> | undefined
  /** The allocator of addresses and ports of Services that all threads share. Absent: the allocator of this thread. */
  readonly allocationFor?: AllocationFor | undefined
  /** Called with the size that admission gave the object. Throws if another thread must continue the request. */
  readonly grown?: (size: { readonly values: number; readonly bytes: number }) => void
}

/**
 * The hooks through which a kind changes the generic write path. `prepare` hooks may change `object`, and must not
 * retain it; `validate` hooks must not change it.
 */
export interface Strategy {
  prepareForCreate?(object: KubeObject, context: RequestContext): void
  /** `subresource`: the updated subresource; empty for the object itself and when a deletion marks it. */
  prepareForUpdate?(object: KubeObject, old: KubeObject, context: RequestContext, subresource: string): void
  validateCreate?(object: KubeObject, context: RequestContext): StatusCause[]
  validateUpdate?(object: KubeObject, old: KubeObject, context: RequestContext, subresource: string): StatusCause[]
  /** Warnings about a valid object. `old` is undefined for a new object; `subresource` as in `prepareForUpdate`. */
  warningsOf?(
    object: KubeObject,
    old: KubeObject | undefined,
    context: RequestContext,
    subresource: string,
  ): readonly string[]
  /** Runs after validation: converts the object to the storage version. */
  prepareForStorage?(object: KubeObject): void
  /** Sets defaults. Runs on create and on update. */
  applyDefaults?(object: KubeObject, context: RequestContext): void
  /** True: a PUT without resourceVersion overwrites. Default true: most built-in kinds allow it. */
  readonly allowUnconditionalUpdate?: boolean
  /** True: a PUT creates the object if it is missing. */
  readonly allowCreateOnUpdate?: boolean
  /** True: metadata.generation counts changes of the spec. */
  readonly hasGeneration: boolean
  /** Changes of only these members do not raise metadata.generation. */
  readonly statusMembers: readonly string[]
  /** True: only the subresource `status` may write the status. */
  readonly hasStatus: boolean
  /** Field selectors besides metadata.name and metadata.namespace. */
  readonly selectableFields: Readonly<Record<string, (object: KubeObject) => string>>
  /** Validates names of objects of this kind. */
  readonly validateName: NameCheck
  /** True: finalizers must be standard ones or qualified. */
  readonly ownFinalizers?: boolean
  /**
   * Additional validations of changed metadata, since upstream repeats errors. Absent: one check of the immutable
   * fields.
   */
  readonly metadataChecks?: { readonly update: readonly MetaCheck[]; readonly status: readonly MetaCheck[] }
  /** The metadata that the subresource `status` may write; absent: `none`. */
  readonly statusMeta?: 'all' | 'allButLabels' | 'none'
  /** True: a new object may have a status. */
  readonly keepsStatusOnCreate?: boolean
  /** True: the response to a deletion is the deleted object instead of a Status. */
  readonly answersDeleted?: boolean
  /** True: the dependents of an object stay if it is deleted without a propagation policy. */
  readonly orphansByDefault?: boolean
  /** True: the deletion of an object waits for no dependents, whatever the propagation policy. */
  readonly ownsNothing?: boolean
  /** True if a change raises metadata.generation. Absent: any change outside metadata and status raises it. */
  countsChange?(next: KubeObject, old: KubeObject): boolean
  /**
   * True if an update only confirms what the object already says, such as another occurrence of an Event, so that a
   * crash may undo the update. Absent: no update does.
   */
  isRenewal?(next: KubeObject, old: KubeObject): boolean
  /** Runs when the object is first deleted, before its finalizers are read. */
  prepareForDelete?(object: KubeObject, context: RequestContext): void
  /**
   * True: the kind's own controller completes the deletion, so marking the object sets no grace period and does not
   * raise the generation.
   */
  readonly deletedByController?: boolean
  /** The manager that managedFields records for the status that the `prepare` hooks set. Absent: none is recorded. */
  readonly statusManager?: string
  /** The filter of the fields that writes through an endpoint can own; absent or undefined: all fields. */
  ownableFields?(subresource: string): FieldFilter | undefined
  /**
   * The grace period of a deletion in seconds. `asked`: the value that the client sent. Absent: objects are deleted at
   * once.
   */
  gracePeriodSeconds?(object: KubeObject, asked: Int64 | undefined): Int64
}

/** One served resource version. Immutable and shared by all requests. */
export interface ResourceDefinition {
  readonly info: ResourceInfo
  /** The resource name in store keys: all versions of a resource share it. */
  readonly storageKey: string
  /** apiVersion of stored objects. */
  readonly storageApiVersion: string
  /** Converts to the storage version, for versions that differ from it in more than the apiVersion. Pure. */
  readonly toStorage?: (object: KubeObject) => KubeObject
  readonly fromStorage?: (object: KubeObject) => KubeObject
  /**
   * The same resource in another version, by apiVersion; undefined if there is no such version. Includes versions of a
   * custom resource that are listed but not served, because entries of managedFields may be in them.
   */
  readonly inVersion: (apiVersion: string) => ResourceDefinition | undefined
  /**
   * For custom resources with a conversion webhook. Then `storageApiVersion` is the version of this definition, in
   * which the write path works, and objects that are read from the store or written to it go through
   * `virtualapi/write/conversion`.
   */
  readonly conversion?: WebhookConversion
  /**
   * For custom resources that may be stored in an older form or another version: a function that is applied to stored
   * bytes before other code reads them. The result has `storageApiVersion`.
   */
  readonly complete?: UpgradeBytes
  readonly schema: SchemaNode | undefined
  readonly strategy: Strategy
  /** For custom resources: columns of kubectl's table, paths of scale. */
  readonly custom?: CustomFacts
  /** True: the objects are not stored, but made from the MemberClusters when they are read. */
  readonly isProjected?: true
  /** True: the definition belongs to another logical cluster, whose APIExport may bound what users do here. */
  readonly isShared?: true
  /** Applied to the bytes of an object that is sent, after all else: adds the annotations of a view. */
  readonly shown?: (bytes: Uint8Array) => Uint8Array
  /** Text of the `Warning` header on every response: this version is deprecated. */
  readonly deprecationWarning?: string
}

/** The client configuration of a conversion webhook, and the versions between which it converts. */
export interface WebhookConversion {
  /** apiVersion in which objects are stored from now on; older objects may be in any other version. */
  readonly storageApiVersion: string
  /** The schemas of all versions, served or not, by apiVersion. */
  readonly schemas: ReadonlyMap<string, SchemaNode>
  /** clientConfig of the webhook. */
  readonly clientConfig: JsonObject
  /** conversionReviewVersions. */
  readonly reviewVersions: readonly string[]
  /** As `complete` of the definition, for objects that are stored in the version of the definition. */
  readonly complete?: UpgradeBytes | undefined
}

/** The fields of a custom resource version that the endpoints need. */
export interface CustomFacts {
  readonly columns: readonly PrinterColumn[]
  readonly scale?: {
    readonly specReplicasPath: string
    readonly statusReplicasPath: string
    readonly labelSelectorPath?: string
  }
}

/** additionalPrinterColumns of a CustomResourceDefinition. */
export interface PrinterColumn {
  readonly name: string
  readonly type: string
  readonly jsonPath: string
  readonly format?: string
  readonly description?: string
  readonly priority?: number
}

/** The resource name in store keys: `deployments.apps`, or `pods` in the core group. */
export function storageKeyOf(info: { group: string; resource: string }): string {
  return groupResourceText(info)
}
