// The Policy of each logical cluster: compiled when first asked, and from then on only what has changed of it.
import { isJsonObject, type ClusterId } from '../../apimachinery/meta/index.ts'
import type { ClusterObjects, Entry, Hub } from '../../store/hub/index.ts'
import { bootstrapObjects } from '../bootstrap/index.ts'
import { LayeredPolicy, type Policy } from './policy.ts'
import { RbacIndex, rbacResources, type RbacPlace } from './rbac-index.ts'

export interface ClusterPolicies {
  /** Loads the logical cluster if need be. Sees every acknowledged write. */
  of(cluster: ClusterId, signal: AbortSignal): Promise<Policy>
}

interface Followed {
  readonly policy: LayeredPolicy
  /** `changes` of each RBAC resource when the policy was last brought up to date; -1 before the first time. */
  readonly seen: number[]
}

const resources = Object.values(rbacResources)

export function createClusterPolicies(hub: Pick<Hub, 'cluster'>): ClusterPolicies {
  const base = baseLayer()
  // A policy leaves memory with the objects it was compiled from, and there is one for each logical cluster there at most.
  const policies = new WeakMap<ClusterObjects, Followed>()
  return {
    of: async (cluster, signal) => {
      const objects = await hub.cluster(cluster, { signal })
      let followed = policies.get(objects)
      if (followed === undefined) {
        followed = { policy: new LayeredPolicy(base), seen: resources.map(() => -1) }
        policies.set(objects, followed)
      }
      follow(followed, objects)
      return followed.policy
    },
  }
}

/** Nothing waits in here: nobody sees a policy of which one half is old. */
function follow({ policy, seen }: Followed, objects: ClusterObjects): void {
  let i = -1
  for (const resource of resources) {
    const before = seen[++i] ?? -1
    const changes = objects.changes(resource)
    if (changes === before) continue
    // Where something throws half of the way, all of it is looked at again.
    seen[i] = -1
    const names = before < 0 ? undefined : objects.changedNames(resource, before)
    if (names === undefined) compareAll(policy, resource, objects)
    else {
      for (const { namespace, name } of names) {
        take(policy, { resource, namespace, name }, objects.get(resource, namespace, name))
      }
    }
    seen[i] = changes
  }
}

/** The first time, and where it is forgotten what changed: what is as it was is not compiled again. */
function compareAll(policy: LayeredPolicy, resource: string, objects: ClusterObjects): void {
  const gone = new Map(policy.places(resource).map((place) => [`${place.namespace}/${place.name}`, place]))
  for (const entry of objects.list({ resource })) {
    const { namespace, name } = entry.key
    gone.delete(`${namespace}/${name}`)
    take(policy, { resource, namespace, name }, entry)
  }
  for (const place of gone.values()) take(policy, place, undefined)
}

/** `entry` is what is there now; undefined where nothing is. */
function take(policy: LayeredPolicy, place: RbacPlace, entry: Entry | undefined): void {
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
