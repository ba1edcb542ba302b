// The Policy of each logical cluster: compiled on first use, then updated with only the changed RBAC objects.
import type { ClusterId } from '#apimachinery/meta/index.ts'
import { inheritLabel } from '#crds/index.ts'
import { abortable, yieldEvery } from '#async/index.ts'
import type { ClusterObjects, Entry, WatchCache } from '#store/watch-cache/index.ts'
import { bootstrapObjects } from '#virtualapi/catalog/bootstrap/index.ts'
import { LayeredPolicy } from './policy.ts'
import { RbacIndex, rbacResources, type RbacPlace } from './rbac-index.ts'
import type { RbacSource } from './stored-role.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'

export interface ClusterPolicies {
  /** The policy of a logical cluster, which is loaded if necessary. Includes every acknowledged write. */
  of(cluster: ClusterId, signal: AbortSignal): Promise<LayeredPolicy>
  /** The policies of several logical clusters at one time, in the given order. */
  ofAll(clusters: readonly ClusterId[], signal: AbortSignal): Promise<readonly LayeredPolicy[]>
}

interface TrackedPolicy {
  readonly policy: LayeredPolicy
  /** The change counter of each RBAC resource at the last update of the policy; -1 before the first. */
  readonly seen: number[]
  /** The comparison of all objects that is under way, if any. The policy must not be read until it ends. */
  comparing: Promise<void> | undefined
}

/** How long a comparison of all objects runs before other work has a turn, milliseconds. */
const sliceMs = 5

const resources = Object.values(rbacResources)

export function createClusterPolicies(watchCache: Pick<WatchCache, 'cluster'>): ClusterPolicies {
  const base = baseLayer()
  // Weak: a policy is collected together with the objects it was compiled from.
  const policies = new WeakMap<ClusterObjects, TrackedPolicy>()
  const trackedOf = (objects: ClusterObjects): TrackedPolicy => {
    let tracked = policies.get(objects)
    if (tracked === undefined) {
      tracked = { policy: new LayeredPolicy(base), seen: resources.map(() => -1), comparing: undefined }
      policies.set(objects, tracked)
    }
    return tracked
  }
  return {
    of: async (cluster, signal) => {
      const objects = await watchCache.cluster(cluster, { signal })
      const tracked = trackedOf(objects)
      // Objects may change during a comparison; the names of these objects are known, so they need no further
      // comparison.
      while (!update(tracked, objects)) await abortable(compareOnce(tracked, objects), signal)
      return tracked.policy
    },
    ofAll: async (clusters, signal) => {
      const loaded = await Promise.all(clusters.map((cluster) => watchCache.cluster(cluster, { signal })))
      const all = loaded.map((objects) => ({ objects, tracked: trackedOf(objects) }))
      for (;;) {
        // All are updated without a pause, so that none is half updated when the caller reads.
        const behind = all.find(({ objects, tracked }) => !update(tracked, objects))
        if (behind === undefined) return all.map(({ tracked }) => tracked.policy)
        await abortable(compareOnce(behind.tracked, behind.objects), signal)
      }
    },
  }
}

/**
 * Applies the changes since the last update. False if their names are not known, so that all objects must be compared,
 * or if such a comparison is under way. Synchronous, so that no caller reads a half-updated policy.
 */
function update({ policy, seen, comparing }: TrackedPolicy, objects: ClusterObjects): boolean {
  if (comparing !== undefined) return false
  let i = -1
  for (const resource of resources) {
    const before = seen[++i] ?? -1
    const changes = objects.changes(resource)
    if (changes === before) continue
    const names = changedSince(objects, resource, before)
    if (names === undefined) return false
    // If something below throws, the next call compares all objects again.
    seen[i] = -1
    for (const { namespace, name } of names) {
      updateOne(policy, { resource, namespace, name }, objects.get(resource, namespace, name))
    }
    seen[i] = changes
  }
  return true
}

function changedSince(
  objects: ClusterObjects,
  resource: string,
  before: number,
): ReturnType<ClusterObjects['changedNames']> {
  return before < 0 ? undefined : objects.changedNames(resource, before)
}

function compareOnce(tracked: TrackedPolicy, objects: ClusterObjects): Promise<void> {
  tracked.comparing ??= compareAll(tracked, objects).finally(() => {
    tracked.comparing = undefined
  })
  return tracked.comparing
}

/**
 * Compares all objects: the first time, and if the names of changed objects are unknown. Compiles only objects with a
 * new revision. Works in slices, because a tenant may have a gibibyte of bindings.
 */
async function compareAll({ policy, seen }: TrackedPolicy, objects: ClusterObjects): Promise<void> {
  const pause = yieldEvery(sliceMs)
  for (const [i, resource] of resources.entries()) {
    const changes = objects.changes(resource)
    if (changedSince(objects, resource, seen[i] ?? -1) !== undefined) continue
    seen[i] = -1
    const gone = new Map(policy.places(resource).map((place) => [`${place.namespace}/${place.name}`, place]))
    for (const entry of objects.list({ resource })) {
      const due = pause()
      if (due !== undefined) await due
      const { namespace, name } = entry.key
      gone.delete(`${namespace}/${name}`)
      updateOne(policy, { resource, namespace, name }, entry)
    }
    for (const place of gone.values()) updateOne(policy, place, undefined)
    seen[i] = changes
  }
}

/** Puts one object into the policy; `entry` undefined: it was deleted. */
function updateOne(policy: LayeredPolicy, place: RbacPlace, entry: Entry | undefined): void {
  const isBase = entry?.base === true && policy.hasBase(place)
  policy.showBase(place, isBase)
  if (entry === undefined || isBase) policy.own.remove(place)
  else if (policy.own.revisionOf(place) !== entry.revision) policy.own.set(place, entry.revision, sourceOf(entry))
}

function baseLayer(): RbacIndex {
  const index = new RbacIndex()
  const rbac = new Set<string>(resources)
  for (const { resource, object } of bootstrapObjects({ rootCa: '' })) {
    const { name = '', namespace = '' } = object.metadata
    if (rbac.has(resource))
      index.set({ resource, namespace, name }, 0, {
        bytes: 0,
        inherits: false,
        read: () => ({ ...object }),
      })
  }
  return index
}

function sourceOf(entry: Entry): RbacSource {
  return {
    get bytes() {
      return entry.size
    },
    get inherits() {
      return entry.facts.labels?.[inheritLabel] === 'true'
    },
    read: () => decodeObject(entry.bytes),
  }
}
