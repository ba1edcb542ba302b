// The Policy of each logical cluster: compiled on first use, then updated by the changed RBAC objects only.
import { isJsonObject, type ClusterId } from '../../apimachinery/meta/index.ts'
import type { ClusterObjects, Entry, Hub } from '../../store/hub/index.ts'
import { bootstrapObjects } from '../bootstrap/index.ts'
import { LayeredPolicy, type Policy } from './policy.ts'
import { RbacIndex, rbacResources, type RbacPlace } from './rbac-index.ts'

export interface ClusterPolicies {
  /** The policy of a logical cluster, which is loaded if necessary. Includes every acknowledged write. */
  of(cluster: ClusterId, signal: AbortSignal): Promise<Policy>
}

interface TrackedPolicy {
  readonly policy: LayeredPolicy
  /** The change counter of each RBAC resource at the last update of the policy; -1 before the first. */
  readonly seen: number[]
}

const resources = Object.values(rbacResources)

export function createClusterPolicies(hub: Pick<Hub, 'cluster'>): ClusterPolicies {
  const base = baseLayer()
  // Weak: a policy is collected together with the objects it was compiled from.
  const policies = new WeakMap<ClusterObjects, TrackedPolicy>()
  return {
    of: async (cluster, signal) => {
      const objects = await hub.cluster(cluster, { signal })
      let tracked = policies.get(objects)
      if (tracked === undefined) {
        tracked = { policy: new LayeredPolicy(base), seen: resources.map(() => -1) }
        policies.set(objects, tracked)
      }
      update(tracked, objects)
      return tracked.policy
    },
  }
}

/** Updates the policy. Synchronous, so that nobody reads a half-updated policy. */
function update({ policy, seen }: TrackedPolicy, objects: ClusterObjects): void {
  let i = -1
  for (const resource of resources) {
    const before = seen[++i] ?? -1
    const changes = objects.changes(resource)
    if (changes === before) continue
    // If something below throws, the next call compares all objects again.
    seen[i] = -1
    const names = before < 0 ? undefined : objects.changedNames(resource, before)
    if (names === undefined) compareAll(policy, resource, objects)
    else {
      for (const { namespace, name } of names) {
        updateOne(policy, { resource, namespace, name }, objects.get(resource, namespace, name))
      }
    }
    seen[i] = changes
  }
}

/** Compares all objects: the first time, and if the changed names are unknown. Compiles only those with a new revision. */
function compareAll(policy: LayeredPolicy, resource: string, objects: ClusterObjects): void {
  const gone = new Map(policy.places(resource).map((place) => [`${place.namespace}/${place.name}`, place]))
  for (const entry of objects.list({ resource })) {
    const { namespace, name } = entry.key
    gone.delete(`${namespace}/${name}`)
    updateOne(policy, { resource, namespace, name }, entry)
  }
  for (const place of gone.values()) updateOne(policy, place, undefined)
}

/** Puts one object into the policy; `entry` undefined: it was deleted. */
function updateOne(policy: LayeredPolicy, place: RbacPlace, entry: Entry | undefined): void {
  const isBase = entry?.base === true && policy.hasBase(place)
  policy.showBase(place, isBase)
  if (entry === undefined || isBase) policy.own.remove(place)
  else if (policy.own.revisionOf(place) !== entry.revision) policy.own.set(place, entry.revision, decoded(entry))
}

function baseLayer(): RbacIndex {
  const index = new RbacIndex()
  const rbac = new Set<string>(resources)
  for (const { resource, object } of bootstrapObjects('')) {
    const { name = '', namespace = '' } = object.metadata
    if (rbac.has(resource)) index.set({ resource, namespace, name }, 0, object)
  }
  return index
}

function decoded({ bytes }: Entry): Readonly<Record<string, unknown>> {
  const parsed: unknown = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString())
  return isJsonObject(parsed) ? parsed : {}
}
