// Events that a member writes about objects of logical clusters, shown upstream under the same name, with upstream names and
// uids. Upstream they expire as all Events do; their end in the member means nothing.
import { cloneJson, type KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import type { ReconcileResult } from '#reconcile/index.ts'
import { memberAnnotation } from '#crds/index.ts'
import { copyHere, isShownFrom, setOfClaim, speaksFor, workloadOfLive } from '#syncer/rules/entitlement.ts'
import type { ResourceName } from '#syncer/context/resources.ts'
import {
  downstreamNamespaceOf,
  downstreamObject,
  upstreamObject,
  type SyncContext,
  type Visit,
} from '#syncer/context/sync-context.ts'
import { eventUp, type MemberEvent } from '#syncer/transform/event-up.ts'

export const events = { group: '', version: 'v1', resource: 'events' } as const

/** Older ones were shown before this process started, or nobody looks for them any more. */
const maxAgeMs = 300_000
/** How long an Event waits for its object to appear upstream, as that of a pod which is being scheduled. */
const waitSeconds = 2
const maxWaitMs = 60_000

const resourceOfKind: Readonly<Record<string, ResourceName>> = {
  Pod: 'pods',
  ReplicaSet: 'replicasets',
  ReplicationController: 'replicationcontrollers',
  Deployment: 'deployments',
  StatefulSet: 'statefulsets',
  DaemonSet: 'daemonsets',
  Job: 'jobs',
  CronJob: 'cronjobs',
  PersistentVolumeClaim: 'persistentvolumeclaims',
  Service: 'services',
  Ingress: 'ingresses',
  HorizontalPodAutoscaler: 'horizontalpodautoscalers',
  PodDisruptionBudget: 'poddisruptionbudgets',
}

/** Shows one Event upstream, unless its logical cluster has used up its budget, or it is about something that the member does not have. */
export async function visitEvent(
  context: SyncContext,
  visit: Visit,
  signal: AbortSignal,
): Promise<ReconcileResult | undefined> {
  const { cluster, name } = visit
  const memberNamespace = downstreamNamespaceOf(context, visit)
  const live = memberNamespace === undefined ? undefined : context.memberEvent(memberNamespace, name)
  const id = context.upstream.ids.idOf(cluster)
  if (live === undefined || id === undefined || memberNamespace === undefined) return undefined
  const ageMs = context.clock.now() - lastSeenMs(live)
  const resource = resourceOfKind[live.involvedObject?.kind ?? '']
  if (resource === undefined || ageMs > maxAgeMs) return undefined
  const { name: of = '', uid } = (live.involvedObject ?? {}) as { readonly name?: string; readonly uid?: string }
  const about = objectOf(context, resource, { ...visit, name: of }, uid)
  if (about === undefined) {
    const isComing = ageMs <= maxWaitMs && mayCome(context, resource, { ...visit, name: of }, memberNamespace)
    return isComing ? { requeueAfterSeconds: waitSeconds } : undefined
  }
  if (!context.eventBudget.take(cluster, context.clock.now())) return undefined
  await write(context, visit, eventUp(live, { member: context.member.name, clusterId: id, about }), signal)
  return undefined
}

type UpstreamRef = Pick<Visit, 'cluster' | 'namespace' | 'name'>

/**
 * The upstream object for one of the member, if the member has that one, with this uid. ReplicaSets of one template have another name in
 * each member.
 */
function objectOf(
  context: SyncContext,
  resource: ResourceName,
  ref: UpstreamRef,
  uid: string | undefined,
): DeepReadonly<KubeObject> | undefined {
  const here = copyHere(context, resource, ref)
  if (here !== undefined) {
    const isSame = here.copy.metadata.uid === uid
    return isSame && speaksFor(context, ref, here.object) ? here.object : undefined
  }
  if (resource === 'replicasets') {
    const memberNamespace = downstreamNamespaceOf(context, ref)
    const live = memberNamespace && downstreamObject(context, resource, memberNamespace, ref.name)
    const workload = live && live.metadata.uid === uid ? workloadOfLive(context, ref, live) : undefined
    const reported = workload && context.historyReportedAs(ref.cluster, ref.namespace, ref.name)
    return reported?.metadata.ownerReferences?.some((owner) => owner.uid === workload?.metadata.uid)
      ? reported
      : undefined
  }
  const made = upstreamObject(context, resource, ref)
  return made !== undefined && isShownFrom(context, made, uid) ? made : undefined
}

/** Whether the object is in the member and its workload too, so that it may still appear upstream. */
function mayCome(context: SyncContext, resource: ResourceName, ref: UpstreamRef, memberNamespace: string): boolean {
  const live = downstreamObject(context, resource, memberNamespace, ref.name)
  if (live === undefined) return context.view(ref.cluster, ref.namespace).present
  return workloadOfLive(context, ref, live) !== undefined || setOfClaim(context, ref, ref.name) !== undefined
}

function lastSeenMs(event: DeepReadonly<MemberEvent>): number {
  const { series, lastTimestamp, eventTime, metadata } = event
  const text = series?.lastObservedTime ?? lastTimestamp ?? eventTime ?? metadata.creationTimestamp ?? ''
  const at = Date.parse(text)
  return Number.isNaN(at) ? 0 : at
}

function uidOf(event: KubeObject | undefined): string | undefined {
  return (event?.['involvedObject'] as { readonly uid?: string } | undefined)?.uid
}

async function write(
  { upstream, member }: SyncContext,
  { cluster, namespace, name }: Visit,
  event: KubeObject,
  signal: AbortSignal,
): Promise<void> {
  const client = upstream.client(cluster)
  try {
    await client.create(events, event, { signal })
  } catch (error) {
    // The namespace is being deleted.
    if (isStatusError(error, 'Forbidden') || isStatusError(error, 'NotFound')) return
    if (!isStatusError(error, 'AlreadyExists')) throw error
    // Members choose names: an Event of another member, or of the tenant, stays as it is.
    const known = await client.tryGet<KubeObject>(events, { namespace, name }, { signal })
    const isSame = uidOf(known) === uidOf(event) && known?.metadata.annotations?.[memberAnnotation] === member.name
    if (!isSame) return
    const { metadata: _metadata, ...content } = event
    await client
      .patch(events, { namespace, name }, 'merge', cloneJson(content), { signal })
      .catch(tolerate('NotFound', 'Invalid'))
  }
}

/** Keeps of Events in namespaces that are not ours nothing but their names. */
export function onlyOurs(isOurs: (namespace: string) => boolean): (event: KubeObject) => KubeObject {
  return (event) => {
    const { apiVersion, kind, metadata } = event
    const { name = '', namespace = '', resourceVersion = '' } = metadata
    return isOurs(namespace) ? event : { apiVersion, kind, metadata: { name, namespace, resourceVersion } }
  }
}
