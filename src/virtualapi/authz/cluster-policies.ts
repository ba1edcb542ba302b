// The Policy of each logical cluster, compiled when first asked and again when its RBAC objects changed.
import { LRUCache } from 'lru-cache'
import { isJsonObject, type ClusterId } from '../../apimachinery/meta/index.ts'
import type { Entry, Hub } from '../../store/hub/index.ts'
import { bootstrapObjects } from '../bootstrap/index.ts'
import { arrangeRbac, policyOf, rbacResources, type Policy, type RbacObjects, type RbacSource } from './policy.ts'

export interface ClusterPolicies {
  /** Loads the logical cluster if need be. Sees every acknowledged write. */
  of(cluster: ClusterId, signal: AbortSignal): Promise<Policy>
}

interface Compiled {
  /** changedAt of each RBAC resource. */
  readonly state: string
  readonly policy: Policy
}

const maxCompiled = 2000
const resources = Object.values(rbacResources)

export function createClusterPolicies(hub: Pick<Hub, 'cluster'>): ClusterPolicies {
  const base = baseObjects()
  const baseLayer = arrangeRbac(base.values())
  const cache = new LRUCache<ClusterId, Compiled>({ max: maxCompiled })
  return {
    of: async (cluster, signal) => {
      const objects = await hub.cluster(cluster, { signal })
      const state = resources.map((resource) => objects.changedAt(resource)).join()
      const known = cache.get(cluster)
      if (known?.state === state) return known.policy
      const entries = resources.flatMap((resource) => objects.list({ resource }))
      const policy = policyOf(layersOf(entries, base, baseLayer))
      cache.set(cluster, { state, policy })
      return policy
    },
  }
}

/** Where the base layer is as it was, it is shared; else what is left of it is arranged anew, together with the own objects. */
function layersOf(
  entries: readonly Entry[],
  base: ReadonlyMap<string, RbacSource>,
  shared: RbacObjects,
): RbacObjects[] {
  const own = entries.filter((entry) => !entry.base).map(sourceOf)
  const left = entries.filter((entry) => entry.base)
  if (left.length === base.size) return [arrangeRbac(own), shared]
  const fromBase = left.flatMap((entry) => base.get(keyText(entry.key)) ?? [sourceOf(entry)])
  return [arrangeRbac([...own, ...fromBase])]
}

function baseObjects(): Map<string, RbacSource> {
  const rbac = new Set<string>(resources)
  const sources = bootstrapObjects('').flatMap(({ resource, object }): RbacSource[] => {
    const { name = '', namespace = '' } = object.metadata
    return rbac.has(resource) ? [{ resource, namespace, name, object }] : []
  })
  return new Map(sources.map((source) => [keyText(source), source]))
}

function sourceOf({ key, bytes }: Entry): RbacSource {
  const parsed: unknown = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString())
  return {
    resource: key.resource,
    namespace: key.namespace,
    name: key.name,
    object: isJsonObject(parsed) ? parsed : {},
  }
}

function keyText({ resource, namespace, name }: { resource: string; namespace: string; name: string }): string {
  return `${resource}/${namespace}/${name}`
}
