// Definitions that a logical cluster serves without storing them: resources of another logical cluster.
import type { ClusterObjects } from '#store/watch-cache/index.ts'
import type { CompiledCrd, CustomResourceDefinition } from '#virtualapi/catalog/apiextensions/index.ts'

/** A definition for discovery and OpenAPI documents. It need not be stored. */
export interface DocumentedCrd {
  readonly compiled: CompiledCrd
  /** Decodes the definition. */
  readonly read: () => CustomResourceDefinition
}

/** A definition that several logical clusters share. */
export interface SharedDefinition extends DocumentedCrd {
  /** True: the resource is about to be withdrawn, so no object may be created. */
  readonly isTerminating: boolean
}

/** One source of shared definitions. */
export interface DefinitionSource {
  /** The definition of `PLURAL.GROUP`; undefined if the source has none for this logical cluster, or it is not loaded. */
  find(objects: ClusterObjects, name: string): SharedDefinition | undefined
  /** All definitions of this logical cluster that are loaded. */
  all(objects: ClusterObjects): readonly SharedDefinition[]
  /** Loads the definitions of this logical cluster; undefined if none is missing. Must be cheap then. */
  load(objects: ClusterObjects, signal: AbortSignal): Promise<void> | undefined
}
