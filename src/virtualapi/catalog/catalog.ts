// The resources that a logical cluster serves. The write path, endpoints and loops know this interface only: resources
// may come from elsewhere than the logical cluster's own CustomResourceDefinitions.
import type { GroupVersionResource } from '#apimachinery/meta/index.ts'
import type { ClusterObjects, Entry } from '#store/watch-cache/index.ts'
import type { CompiledCrd, CustomResourceDefinition } from './apiextensions/index.ts'
import type { ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'
import type { ResourceInfo } from '#virtualapi/kinds/resources/resource-info.ts'

/** A CustomResourceDefinition that is served: its stored entry, and the compiled form. */
export interface ServedCrd {
  readonly entry: Entry
  readonly compiled: CompiledCrd
}

/** A definition as discovery and OpenAPI show it; it need not be stored. */
export interface DocumentedCrd {
  readonly compiled: CompiledCrd
  /** Decodes the definition. */
  readonly read: () => CustomResourceDefinition
}

export interface Catalog {
  /** The resource of this name and version in this logical cluster, or undefined if it is not served. */
  find(objects: ClusterObjects, gvr: GroupVersionResource): ResourceDefinition | undefined
  /** The resource if it is built in; built-in resources are the same in every logical cluster. */
  findBuiltIn(gvr: GroupVersionResource): ResourceDefinition | undefined
  /** The other served versions of the same stored resource. */
  equivalents(objects: ClusterObjects, definition: ResourceDefinition): readonly ResourceDefinition[]
  /** Everything that this logical cluster serves, for discovery. */
  all(objects: ClusterObjects): readonly ResourceInfo[]
  /** Differs where other resources are served than those of CustomResourceDefinitions: part of the keys of caches. */
  variant(): string
  /**
   * Compiles the CustomResourceDefinitions that are not compiled yet; `turn` lets other work run between two of them.
   */
  compileInTurns(objects: ClusterObjects, turn: () => Promise<void>): Promise<void>
  /** The CustomResourceDefinitions that this logical cluster serves, compiled. */
  crds(objects: ClusterObjects): readonly ServedCrd[]
  /** The same, and what is served besides without being stored, such as members. */
  documented(objects: ClusterObjects): readonly DocumentedCrd[]
}
