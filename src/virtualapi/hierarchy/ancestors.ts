// The ancestors of a logical cluster with their objects, for all that is inherited. Nothing is kept per logical cluster.
import type { ClusterId } from '#apimachinery/meta/index.ts'
import type { ClusterObjects } from '#store/watch-cache/index.ts'
import { serviceUnavailable } from '#apimachinery/status/index.ts'
import { ancestryOf } from '#virtualapi/request/hierarchy.ts'
import type { ClusterDirectory, LogicalCluster } from '#virtualapi/request/logical-cluster.ts'

export interface Ancestor {
  readonly cluster: LogicalCluster
  readonly objects: ClusterObjects
}

export interface Ancestors {
  /** The logical cluster of this id, if it has a parent; undefined for all others. */
  childOf(id: ClusterId): LogicalCluster | undefined
  /** The ancestors whose objects are in memory, the parent first. */
  above(id: ClusterId): readonly Ancestor[]
  /**
   * All ancestors, the parent first, for what a logical cluster must not escape. Throws 503 if one has left memory since
   * it was loaded: a policy that is not there would not act.
   */
  all(id: ClusterId): readonly Ancestor[]
  /** Loads the objects of the ancestors; undefined if all are in memory. */
  load(id: ClusterId, signal: AbortSignal): Promise<void> | undefined
}

/** The objects of logical clusters, as far as ancestors need them. */
export interface ObjectsInMemory {
  loaded(id: ClusterId): ClusterObjects | undefined
  cluster(id: ClusterId, options: { readonly signal: AbortSignal }): Promise<ClusterObjects>
}

export function createAncestors(
  directory: Pick<ClusterDirectory, 'byName' | 'byId'>,
  watchCache: ObjectsInMemory,
): Ancestors {
  const childOf = (id: ClusterId): LogicalCluster | undefined => {
    const cluster = directory.byId(id)
    return cluster?.parent === undefined ? undefined : cluster
  }
  const ancestorsOf = (id: ClusterId): readonly LogicalCluster[] => {
    const child = childOf(id)
    return child === undefined ? [] : ancestryOf(child, directory).ancestors
  }
  return {
    childOf,
    above: (id) =>
      ancestorsOf(id).flatMap((cluster) => {
        const objects = watchCache.loaded(cluster.id)
        return objects === undefined ? [] : [{ cluster, objects }]
      }),
    all: (id) =>
      ancestorsOf(id).map((cluster) => {
        const objects = watchCache.loaded(cluster.id)
        if (objects !== undefined) return { cluster, objects }
        throw serviceUnavailable(`logical cluster "${cluster.name}" is being loaded, please try again`)
      }),
    load: (id, signal) => {
      const missing = ancestorsOf(id).filter((cluster) => watchCache.loaded(cluster.id) === undefined)
      if (missing.length === 0) return undefined
      return Promise.all(missing.map((cluster) => watchCache.cluster(cluster.id, { signal }))).then(() => undefined)
    },
  }
}
