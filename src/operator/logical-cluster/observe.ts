// Questions of a reconcile to an API: whether the logical cluster is served, and which of its objects members still
// hold.
import {
  groupResourceText,
  type GroupVersionResource,
  type KubeObject,
  parseApiVersion,
} from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import {
  apiExportRevisions,
  isOwnFinalizer,
  memberClusters,
  revisionFinalizer,
  syncerFinalizerPrefix,
} from '#crds/index.ts'
import { type ContentLeft, type HeldObject, maxHeld, type Observed, type OrphanedObject } from './plan.ts'

/** Asks the API of the logical cluster for a namespace. Rejects with its error if `mayThrow`, else reports it. */
export async function probe(
  virtual: Pick<KubeClient, 'raw'>,
  { mayThrow, signal }: { readonly mayThrow: boolean; readonly signal: AbortSignal },
): Promise<NonNullable<Observed['served']>> {
  try {
    await virtual.raw('/api/v1/namespaces/default', { signal })
    return { ok: true }
  } catch (error) {
    signal.throwIfAborted()
    if (mayThrow) throw error
    return { ok: false, message: `its API does not answer: ${(error as Error).message}` }
  }
}

/**
 * The objects that must be gone before the logical cluster can be purged: what is in members, and definitions that other
 * logical clusters use. Without members it looks for definitions alone.
 * `clusters` is the API with the MemberClusters: it is asked which exist, because a cache alone is no reason to drop a
 * finalizer.
 */
export async function inspectContent(
  virtual: KubeClient,
  clusters: KubeClient,
  { hasMembers, signal }: { readonly hasMembers: boolean; readonly signal: AbortSignal },
): Promise<ContentLeft> {
  const nothing = { total: 0, held: [], orphaned: [], counts: [] }
  try {
    if (!hasMembers) return await findContent(virtual, new Set(), signal, [apiExportRevisions])
    const { items } = await clusters.list<KubeObject>(memberClusters, { metadataOnly: true, signal })
    return await findContent(virtual, new Set(items.map(({ metadata }) => metadata.name ?? '')), signal)
  } catch (error) {
    // The server does not know the logical cluster any more: it has no objects.
    if (isStatusError(error, 'NotFound')) return nothing
    throw error
  }
}

/** Namespaces that cannot be deleted by a request. Their content can; they themselves go with the logical cluster. */
const undeletable = ['default', 'kube-system', 'kube-public', 'kube-node-lease']

/**
 * All objects with the finalizer of a syncer or of consumers. `client` is the API of the logical cluster, `members` are
 * all that exist, `resources` where to look: by default everywhere.
 */
export async function findContent(
  client: KubeClient,
  members: ReadonlySet<string>,
  signal: AbortSignal,
  resources?: readonly GroupVersionResource[],
): Promise<ContentLeft> {
  const isGone = (finalizer: string): boolean =>
    finalizer.startsWith(syncerFinalizerPrefix) && !members.has(finalizer.slice(syncerFinalizerPrefix.length))
  const orphaned: OrphanedObject[] = []
  const counts = new Map<string, { resource: string; finalizer: string; count: number }>()
  const held: HeldObject[] = []
  let total = 0
  for (const gvr of resources ?? (await listableResources(client, signal))) {
    for (const { metadata } of await listMetadata(client, gvr, signal)) {
      const finalizers = (metadata.finalizers ?? []).filter(
        (text) => text.startsWith(syncerFinalizerPrefix) || text === revisionFinalizer,
      )
      const [finalizer] = finalizers
      const { name = '', namespace, uid = '', resourceVersion = '' } = metadata
      if (finalizer === undefined || (gvr.resource === 'namespaces' && undeletable.includes(name))) continue
      total++
      if (orphaned.length < maxHeld && finalizers.some(isGone)) {
        const keptFinalizers = (metadata.finalizers ?? []).filter((text) => !isGone(text))
        orphaned.push({ gvr, name, resourceVersion, keptFinalizers, ...(namespace ? { namespace } : {}) })
      }
      const resource = groupResourceText(gvr)
      const count = counts.get(`${resource} ${finalizer}`) ?? { resource, finalizer, count: 0 }
      counts.set(`${resource} ${finalizer}`, { ...count, count: count.count + 1 })
      // The last consumer ends it: a deletion would end nothing.
      if (finalizer === revisionFinalizer) continue
      const isHeldByOthers = (metadata.finalizers ?? []).some((text) => !isOwnFinalizer(text))
      const isEnding = !isHeldByOthers || (metadata.finalizers ?? []).includes('foregroundDeletion')
      const deleting = metadata.deletionTimestamp !== undefined && isEnding
      if (held.length < maxHeld && !deleting) {
        held.push({ gvr, name, uid, deleting, isHeldByOthers, finalizers, ...(namespace ? { namespace } : {}) })
      }
    }
  }
  return { total, held, orphaned, counts: [...counts.values()] }
}

/** A resource that is no longer served counts as empty. */
async function listMetadata(client: KubeClient, gvr: GroupVersionResource, signal: AbortSignal): Promise<KubeObject[]> {
  try {
    return (await client.list(gvr, { metadataOnly: true, signal })).items
  } catch (error) {
    if (isStatusError(error, 'NotFound') || isStatusError(error, 'MethodNotAllowed')) return []
    throw error
  }
}

interface ResourceList {
  resources?: { name: string; verbs?: string[] }[]
}
interface Aggregated {
  kind: 'APIGroupDiscoveryList'
  items?: {
    metadata?: { name?: string }
    versions?: { version: string; resources?: { resource: string; verbs?: string[] }[] }[]
  }[]
}
interface GroupList {
  groups?: { name: string; preferredVersion?: { groupVersion: string }; versions?: { groupVersion: string }[] }[]
}

const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json'

/** Every resource with the verb list, in the version the server prefers. */
async function listableResources(client: KubeClient, signal: AbortSignal): Promise<GroupVersionResource[]> {
  const [core, groups] = await Promise.all([
    client.raw('/api', { signal, accept: aggregated }),
    client.raw('/apis', { signal, accept: aggregated }),
  ])
  if (isAggregated(core) && isAggregated(groups)) return [...fromAggregated(core), ...fromAggregated(groups)]
  const preferred = ((groups as GroupList).groups ?? []).flatMap(({ preferredVersion, versions = [] }) =>
    (versions.length > 0 ? versions : preferredVersion ? [preferredVersion] : []).map(
      ({ groupVersion }) => groupVersion,
    ),
  )
  const found = new Map<string, GroupVersionResource>()
  for (const groupVersion of ['v1', ...preferred]) {
    const { group, version } = parseApiVersion(groupVersion)
    const list = await resourceList(client, group === '' ? `/api/${version}` : `/apis/${groupVersion}`, signal)
    for (const { name, verbs = [] } of list.resources ?? []) {
      const key = `${name}.${group}`
      const wanted = verbs.includes('list') && !name.includes('/') && !found.has(key)
      if (wanted) found.set(key, { group, version, resource: name })
    }
  }
  return [...found.values()]
}

function isAggregated(value: unknown): value is Aggregated {
  return (value as Aggregated | undefined)?.kind === 'APIGroupDiscoveryList'
}

function fromAggregated({ items = [] }: Aggregated): GroupVersionResource[] {
  const found = new Map<string, GroupVersionResource>()
  for (const { metadata, versions = [] } of items) {
    const group = metadata?.name ?? ''
    for (const { version, resources = [] } of versions) {
      for (const { resource, verbs = [] } of resources) {
        const key = `${resource}.${group}`
        if (verbs.includes('list') && !found.has(key)) found.set(key, { group, version, resource })
      }
    }
  }
  return [...found.values()]
}

/** A group that was removed meanwhile, or whose aggregated server is down, counts as empty. */
async function resourceList(client: KubeClient, path: string, signal: AbortSignal): Promise<ResourceList> {
  try {
    return (await client.raw(path, { signal })) as ResourceList
  } catch (error) {
    if (isStatusError(error, 'NotFound') || isStatusError(error, 'ServiceUnavailable')) return {}
    throw error
  }
}
