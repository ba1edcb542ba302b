// What a logical cluster serves. The write path, endpoints and loops know this interface only: resources may come from
// elsewhere than the logical cluster's own CustomResourceDefinitions.
import type { GroupVersionResource } from '../../apimachinery/meta/index.ts'
import type { ClusterObjects, Entry } from '../../store/hub/index.ts'
import type { CompiledCrd } from '../apiextensions/index.ts'
import type { ResourceDefinition } from '../resources/resource-definition.ts'
import type { ResourceInfo } from '../resources/resource-info.ts'

/** A CustomResourceDefinition that is served: as it is kept, and compiled. */
export interface ServedCrd {
  readonly entry: Entry
  readonly compiled: CompiledCrd
}

export interface Catalog {
  /** The resource of this name and version in this logical cluster, or undefined where it serves none. */
  find(objects: ClusterObjects, gvr: GroupVersionResource): ResourceDefinition | undefined
  /** The resource if it is built in: the same in every logical cluster. */
  findBuiltIn(gvr: GroupVersionResource): ResourceDefinition | undefined
  /** All that this logical cluster serves, for discovery. */
  all(objects: ClusterObjects): readonly ResourceInfo[]
  /** The CustomResourceDefinitions that this logical cluster serves, compiled. */
  crds(objects: ClusterObjects): readonly ServedCrd[]
}
