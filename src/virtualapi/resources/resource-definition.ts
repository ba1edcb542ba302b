// Everything the server knows of one served resource version, built-in or from a CustomResourceDefinition.
import { groupResourceText, type KubeObject } from '../../apimachinery/meta/index.ts'
import type { SchemaNode } from '../../apimachinery/schema/index.ts'
import type { StatusCause } from '../../apimachinery/status/index.ts'
import type { ClusterObjects } from '../../store/hub/index.ts'
import type { UserInfo } from '../authn/user-info.ts'
import type { LogicalCluster } from '../clusters/directory.ts'
import type { CompleteBytes } from './form-on-read.ts'
import type { NameCheck } from './names.ts'
import type { MetaCheck } from './meta-check.ts'
import type { ResourceInfo } from './resource-info.ts'

/** What a hook may look at besides the object. */
export interface RequestContext {
  readonly cluster: LogicalCluster
  readonly objects: ClusterObjects
  readonly user: UserInfo
  readonly dryRun: boolean
  /** In whose name metadata.managedFields count the fields that are written; may be empty. */
  readonly fieldManager: string
  /** Text for `Warning` headers; hooks append. */
  readonly warnings: string[]
  /** Wall clock, milliseconds. */
  readonly now: number
}

/**
 * What a kind does beyond the generic: hooks of the write path. `prepare` hooks may change `object`, and must not keep
 * it; `validate` hooks look only.
 */
export interface Strategy {
  prepareForCreate?(object: KubeObject, context: RequestContext): void
  /** `subresource`: through which the update came; empty for the object itself and for deletion marks. */
  prepareForUpdate?(object: KubeObject, old: KubeObject, context: RequestContext, subresource: string): void
  validateCreate?(object: KubeObject, context: RequestContext): StatusCause[]
  validateUpdate?(object: KubeObject, old: KubeObject, context: RequestContext, subresource: string): StatusCause[]
  /** What the writer of a good object should know. `old` is absent for a new one; `subresource` as in `prepareForUpdate`. */
  warningsOf?(
    object: KubeObject,
    old: KubeObject | undefined,
    context: RequestContext,
    subresource: string,
  ): readonly string[]
  /** After validation: the object as the version has it that is kept. */
  prepareForStorage?(object: KubeObject): void
  /** Values of a new object that nobody set. Also run on updates. */
  applyDefaults?(object: KubeObject, context: RequestContext): void
  /** True: a PUT without resourceVersion overwrites. Default true for built-in kinds, as most there. */
  readonly allowUnconditionalUpdate?: boolean
  /** True: a PUT of a missing object creates it. */
  readonly allowCreateOnUpdate?: boolean
  /** metadata.generation counts changes of the spec. */
  readonly hasGeneration: boolean
  /** Changes of these members alone do not count as a change of the spec. */
  readonly statusMembers: readonly string[]
  /** Members that the main endpoint may not write because a subresource `status` does. */
  readonly hasStatus: boolean
  /** Field selectors besides metadata.name and metadata.namespace. */
  readonly selectableFields: Readonly<Record<string, (object: KubeObject) => string>>
  /** Names that objects of this kind may have. */
  readonly validateName: NameCheck
  /** True: finalizers must be upstream's own or qualified. */
  readonly ownFinalizers?: boolean
  /** How often changed metadata is looked at, besides once for all kinds; once more where absent. */
  readonly metaChecks?: { readonly update: readonly MetaCheck[]; readonly status: readonly MetaCheck[] }
  /** What of metadata the subresource `status` writes; nothing but finalizers and the like where absent. */
  readonly statusMeta?: 'all' | 'allButLabels' | 'none'
  /** True: a new object may come with its status. */
  readonly bornWithStatus?: boolean
  /** True: who deletes an object is answered with it, not with a Status. */
  readonly answersDeleted?: boolean
  /** True: what it owns stays when it is deleted and nobody says otherwise. */
  readonly orphansByDefault?: boolean
  /** True: its deletion waits for no dependents, whatever policy is asked for. */
  readonly ownsNothing?: boolean
  /** Whether a change counts in metadata.generation, where that is not any change besides metadata and status. */
  countsChange?(next: KubeObject, old: KubeObject): boolean
  /** When the object is first deleted, before its finalizers are looked at. */
  prepareForDelete?(object: KubeObject, context: RequestContext): void
  /** True: it goes by what its own controller says. A mark of deletion is no grace period and no new generation. */
  readonly endsItself?: boolean
  /** Seconds of grace that a deletion gets when the client asks for none; undefined: deleted at once. */
  gracePeriodSeconds?(object: KubeObject, asked: number | undefined): number
}

export interface ResourceDefinition {
  readonly info: ResourceInfo
  /** Under which resource the store keeps it: all versions of a resource share it. */
  readonly storageKey: string
  /** apiVersion that objects at rest carry. */
  readonly storageApiVersion: string
  /** For versions whose form differs from the stored one by more than the apiVersion. Pure. */
  readonly toStorage?: (object: KubeObject) => KubeObject
  readonly fromStorage?: (object: KubeObject) => KubeObject
  /** Of custom resources that may be kept in an older form: run on bytes at rest before anybody reads them. */
  readonly complete?: CompleteBytes
  readonly schema: SchemaNode | undefined
  readonly strategy: Strategy
  /** Of custom resources: columns of kubectl's table, paths of scale. */
  readonly custom?: CustomFacts
  /** Text for the `Warning` header of every answer: this version is deprecated. */
  readonly deprecationWarning?: string
}

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

export function storageKeyOf(info: { group: string; resource: string }): string {
  return groupResourceText(info)
}
