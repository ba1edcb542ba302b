// Releases workloads from a MemberCluster that an admin removed together with its finalizer, because the member is lost
// for good. No syncer will remove the copies, so their finalizers, reported statuses and pods are removed here.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import type { DeepReadonly, KubeClient } from '#client/index.ts'
import {
  finalizingMembers,
  memberAnnotation,
  memberClusters,
  memberStatusAnnotation,
  memberStatusesOf,
  syncerFinalizer,
  workloadKindOfObject,
} from '#crds/index.ts'

/** Other resources on which members report. */
const reportedOn = [
  { group: 'apps', version: 'v1', resource: 'replicasets' },
  { group: '', version: 'v1', resource: 'services' },
  { group: '', version: 'v1', resource: 'persistentvolumeclaims' },
  { group: 'networking.k8s.io', version: 'v1', resource: 'ingresses' },
  { group: 'autoscaling', version: 'v2', resource: 'horizontalpodautoscalers' },
  { group: 'policy', version: 'v1', resource: 'poddisruptionbudgets' },
] as const
/** Resources that a member created upstream and only its syncer would delete. */
const createdByMembers = [
  { group: '', version: 'v1', resource: 'pods' },
  { group: 'batch', version: 'v1', resource: 'jobs' },
  { group: 'apps', version: 'v1', resource: 'controllerrevisions' },
  { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices' },
  { group: '', version: 'v1', resource: 'nodes' },
] as const

/** Members that are not known, and whose finalizer or reported status is on the workload. */
export function unknownMembers(workload: DeepReadonly<KubeObject>, isKnown: (member: string) => boolean): string[] {
  const named = [...finalizingMembers(workload), ...Object.keys(memberStatusesOf(workload as KubeObject))]
  return [...new Set(named)].filter((member) => !isKnown(member)).sort()
}

export interface ReleaseOptions {
  /** The API with the MemberClusters. */
  readonly clusters: KubeClient
  /** The API of the workload's logical cluster. */
  readonly client: KubeClient
  readonly workload: DeepReadonly<KubeObject>
  readonly members: readonly string[]
  readonly signal: AbortSignal
}

/**
 * Releases the workload from those of the members that do not exist, and resolves with their names. Asks the API,
 * because a workload is not released because of a cache alone; one list for all, because tenants can write thousands of
 * finalizers with invented names. Rejects with StatusError.
 */
export async function releaseGone({ clusters, client, workload, members, signal }: ReleaseOptions): Promise<string[]> {
  const { items } = await clusters.list<KubeObject>(memberClusters, { metadataOnly: true, signal })
  const there = new Set(items.map((item) => item.metadata.name))
  const gone = members.filter((name) => !there.has(name))
  const kind = workloadKindOfObject(workload)
  if (gone.length === 0 || kind === undefined) return gone
  const { name = '', namespace = '', finalizers = [], resourceVersion } = workload.metadata
  await deleteCreatedBy(client, namespace, new Set(gone), signal)
  const reported = new Set(gone.map((member) => memberStatusAnnotation(member)))
  const annotations = clearedMemberStatuses(workload, reported)
  for (const gvr of reportedOn) {
    for (const { metadata } of (await client.list<KubeObject>(gvr, { namespace, signal })).items) {
      if (!Object.keys(metadata.annotations ?? {}).some((annotation) => reported.has(annotation))) continue
      const ref = { namespace, name: metadata.name ?? '' }
      const patch = { metadata: { annotations: clearedMemberStatuses({ metadata }, reported) } }
      await client.patch(gvr, ref, 'merge', patch, { signal }).catch(tolerate('NotFound'))
    }
  }
  // Last: without the finalizer there would be no reconcile to finish the rest.
  const released = new Set(gone.map((member) => syncerFinalizer(member)))
  const kept = finalizers.filter((finalizer) => !released.has(finalizer))
  const metadata = { resourceVersion, finalizers: kept, annotations }
  await client.patch(kind.gvr, { namespace, name }, 'merge', { metadata }, { signal }).catch(tolerate('NotFound'))
  return gone
}

/** Annotations of a merge patch that remove those of `reported` which the object has. */
function clearedMemberStatuses(
  { metadata }: Pick<DeepReadonly<KubeObject>, 'metadata'>,
  reported: ReadonlySet<string>,
): Record<string, null> {
  const there = Object.keys(metadata.annotations ?? {}).filter((annotation) => reported.has(annotation))
  return Object.fromEntries(there.map((annotation) => [annotation, null]))
}

async function deleteCreatedBy(
  client: KubeClient,
  namespace: string,
  gone: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<void> {
  for (const gvr of createdByMembers) {
    const within = gvr.resource === 'nodes' ? {} : { namespace }
    for (const { metadata } of (await client.list<KubeObject>(gvr, { ...within, signal })).items) {
      const member = metadata.annotations?.[memberAnnotation]
      if (member === undefined || !gone.has(member)) continue
      const { name = '', uid } = metadata
      await client
        .delete(gvr, { ...within, name }, { ...(uid && { uid }), gracePeriodSeconds: 0, signal })
        .catch(tolerate('NotFound'))
    }
  }
}
