// The resources that a logical cluster serves. The write path, endpoints and loops use only this interface, because
// resources may have other sources than the logical cluster's own CustomResourceDefinitions.
import type { GroupVersionResource } from '#apimachinery/meta/index.ts'
import type { ClusterObjects, Entry } from '#store/watch-cache/index.ts'
import type { CompiledCrd } from './apiextensions/index.ts'
import type { DocumentedCrd, SharedDefinition } from './sharing/definition-source.ts'
import type { ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'
import type { ResourceInfo } from '#virtualapi/kinds/resources/resource-info.ts'

/** A CustomResourceDefinition that is served: its stored entry, and the compiled form. */
export interface ServedCrd {
  readonly entry: Entry
  readonly compiled: CompiledCrd
}

export type { DocumentedCrd } from './sharing/definition-source.ts'

export interface Catalog {
  /** The resource of this name and version in this logical cluster, or undefined if it is not served. */
  find(objects: ClusterObjects, gvr: GroupVersionResource): ResourceDefinition | undefined
  /** The resource if it is built in, or undefined. Built-in resources are the same in every logical cluster. */
  findBuiltIn(gvr: GroupVersionResource): ResourceDefinition | undefined
  /** The resource if its definition is ours and the same in every logical cluster. */
  findOurs(gvr: GroupVersionResource): ResourceDefinition | undefined
  /** The other served versions of the same stored resource. */
  equivalents(objects: ClusterObjects, definition: ResourceDefinition): readonly ResourceDefinition[]
  /** All resource versions that this logical cluster serves, for discovery. */
  all(objects: ClusterObjects): readonly ResourceInfo[]
  /**
   * A text that differs if other resources are served besides built-in and custom ones. Caches use it as a part of
   * their keys.
   */
  variant(): string
  /**
   * Loads shared definitions, and compiles the CustomResourceDefinitions that are not compiled yet; `turn` lets other work run between two of them.
   */
  compileInTurns(objects: ClusterObjects, turn: () => Promise<void>, signal: AbortSignal): Promise<void>
  /** Loads the definitions that other logical clusters share with this one; undefined if none is missing. */
  load(objects: ClusterObjects, signal: AbortSignal): Promise<void> | undefined
  /** Loaded definitions that other logical clusters share with this one, and those of our own kinds. */
  shared(objects: ClusterObjects): readonly SharedDefinition[]
  /** A version of a shared definition; undefined if it is not served. */
  versionOf(shared: SharedDefinition, version: string): ResourceDefinition | undefined
  /** The loaded shared definition of `PLURAL.GROUP`. */
  sharedDefinition(objects: ClusterObjects, name: string): SharedDefinition | undefined
  /** The CustomResourceDefinitions that this logical cluster serves, compiled. */
  crds(objects: ClusterObjects): readonly ServedCrd[]
  /** The same, and definitions that are served without being stored, such as members. */
  documented(objects: ClusterObjects): readonly DocumentedCrd[]
}
