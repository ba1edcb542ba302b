// Everything the server knows of one served resource version, built-in or from a CustomResourceDefinition.
import { groupResourceText, type JsonObject, type KubeObject, type Int64 } from '#apimachinery/meta/index.ts'
import type { FieldFilter } from '#apimachinery/managed-fields/index.ts'
import type { SchemaNode } from '#apimachinery/schema/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { WorkBudget } from '#apimachinery/work-budget/index.ts'
import type { ClusterObjects } from '#store/watch-cache/index.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { AllocationFor } from './allocation.ts'
import type { UpgradeBytes } from './upgrade-on-read.ts'
import type { NameCheck } from './names.ts'
import type { MetaCheck } from './meta-check.ts'
import type { ResourceInfo } from './resource-info.ts'

/** What a hook may read besides the object. */
export interface RequestContext {
  readonly cluster: LogicalCluster
  readonly objects: ClusterObjects
  readonly user: UserInfo
  readonly dryRun: boolean
  /** In whose name metadata.managedFields count the fields that are written; may be empty. */
  readonly fieldManager: string
  /** Texts for `Warning` headers; hooks append to it. */
  readonly warnings: string[]
  /** What the request may still cost; hooks charge loops over what tenants wrote. */
  readonly work: WorkBudget
  /** Wall clock in milliseconds since the epoch. */
  readonly now: number
  /** CreateOptions, UpdateOptions or DeleteOptions of the request, as webhooks are shown them. */
  readonly options?: JsonObject
  /** True: the endpoint has asked the webhooks about the request itself, so its writes are not shown to them. */
  readonly admitted?: boolean
  /** Adds an annotation to the audit line of the request. */
  readonly annotate?: (key: string, value: string) => void
  /** Resolves as `answer`; the request does not count in the process-wide limit while it waits for somebody outside. */
  readonly whileWaiting?: <T>(response: Promise<T>) => Promise<T>
  /** Awaited before more work for the request, so that others are served; undefined: no need to wait. */
  readonly turn?: () => Promise<void> | undefined
  /** The allocator of addresses and ports of Services that all threads share. Absent: the allocator of this thread. */
  readonly allocationFor?: AllocationFor | undefined
  /** Told of the size that admission gave the object. Throws if the request must go on elsewhere. */
  readonly grown?: (size: { readonly values: number; readonly bytes: number }) => void
}

/**
 * The hooks through which a kind changes the generic write path. `prepare` hooks may change `object`, and must not
 * retain it; `validate` hooks must not change it.
 */
export interface Strategy {
  prepareForCreate?(object: KubeObject, context: RequestContext): void
  /** `subresource`: the one that is updated; empty for the object itself and when a deletion marks it. */
  prepareForUpdate?(object: KubeObject, old: KubeObject, context: RequestContext, subresource: string): void
  validateCreate?(object: KubeObject, context: RequestContext): StatusCause[]
  validateUpdate?(object: KubeObject, old: KubeObject, context: RequestContext, subresource: string): StatusCause[]
  /** Warnings about a valid object. `old` is absent for a new one; `subresource` as in `prepareForUpdate`. */
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
   * Validations of changed metadata besides the one for all kinds, since upstream repeats errors; absent: one of
   * immutable fields.
   */
  readonly metadataChecks?: { readonly update: readonly MetaCheck[]; readonly status: readonly MetaCheck[] }
  /** The metadata that the subresource `status` may write; absent: `none`. */
  readonly statusMeta?: 'all' | 'allButLabels' | 'none'
  /** True: a new object may have a status. */
  readonly keepsStatusOnCreate?: boolean
  /** True: the response to a deletion is the deleted object instead of a Status. */
  readonly answersDeleted?: boolean
  /** True: its dependents stay when it is deleted without a propagation policy. */
  readonly orphansByDefault?: boolean
  /** True: its deletion waits for no dependents, whatever the propagation policy. */
  readonly ownsNothing?: boolean
  /** Whether a change raises metadata.generation; absent: any change outside metadata and status does. */
  countsChange?(next: KubeObject, old: KubeObject): boolean
  /** Whether an update says only that something still holds, so that a crash may undo it. Absent: none does. */
  isRenewal?(next: KubeObject, old: KubeObject): boolean
  /** Runs when the object is first deleted, before its finalizers are read. */
  prepareForDelete?(object: KubeObject, context: RequestContext): void
  /**
   * True: its own controller completes the deletion, so the mark sets no grace period and does not raise the
   * generation.
   */
  readonly deletedByController?: boolean
  /** In whose name managedFields count the status that the `prepare` hooks set; absent: they set none to speak of. */
  readonly statusManager?: string
  /** Keeps the fields that writes through an endpoint can own; absent or undefined: all. */
  ownableFields?(subresource: string): FieldFilter | undefined
  /** Seconds of grace for a deletion; `asked` is the client's wish. Absent: objects are deleted at once. */
  gracePeriodSeconds?(object: KubeObject, asked: Int64 | undefined): Int64
}

/** One served resource version. Immutable and shared by all requests. */
export interface ResourceDefinition {
  readonly info: ResourceInfo
  /** The resource name in store keys: all versions of a resource share it. */
  readonly storageKey: string
  /** apiVersion of stored objects. */
  readonly storageApiVersion: string
  /** For versions that differ from the storage version in more than the apiVersion. Pure. */
  readonly toStorage?: (object: KubeObject) => KubeObject
  readonly fromStorage?: (object: KubeObject) => KubeObject
  /**
   * The same resource in another version, by apiVersion; undefined where there is none. A version of a custom resource
   * may be listed and not served: entries of managedFields may be in it.
   */
  readonly inVersion: (apiVersion: string) => ResourceDefinition | undefined
  /**
   * For custom resources with a conversion webhook: then `storageApiVersion` is the own version, since the write path
   * works in it, and what is read from the store, or written to it, goes through `virtualapi/write/conversion`.
   */
  readonly conversion?: WebhookConversion
  /**
   * For custom resources that may be stored in an older form or another version: applied to stored bytes before
   * anything reads them. The result has `storageApiVersion`.
   */
  readonly complete?: UpgradeBytes
  readonly schema: SchemaNode | undefined
  readonly strategy: Strategy
  /** For custom resources: columns of kubectl's table, paths of scale. */
  readonly custom?: CustomFacts
  /** True: nothing of it is stored; it is made from the MemberClusters when it is read. */
  readonly isProjected?: true
  /** Text of the `Warning` header on every response: this version is deprecated. */
  readonly deprecationWarning?: string
}

/** How a conversion webhook is called, and what between its versions must be known. */
export interface WebhookConversion {
  /** apiVersion in which objects are stored from now on; older ones may be in any other version. */
  readonly storageApiVersion: string
  /** Of all versions, by apiVersion, served or not. */
  readonly schemas: ReadonlyMap<string, SchemaNode>
  /** clientConfig of the webhook. */
  readonly clientConfig: JsonObject
  /** conversionReviewVersions. */
  readonly reviewVersions: readonly string[]
  /** As `complete` of the definition, for objects that are stored in its version. */
  readonly complete?: UpgradeBytes | undefined
}

/** What the endpoints need to know of a custom resource version. */
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
