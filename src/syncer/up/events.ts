// Events that a member writes about objects of logical clusters, shown upstream under the same name, with upstream
// names and uids. Upstream they expire as all Events do, whenever the member's Events are deleted.
import { cloneJson, type KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import { keyFor, type DeepReadonly } from '#client/index.ts'
import { memberAnnotation } from '#crds/index.ts'
import type { ReconcileResult } from '#reconcile/index.ts'
import type { CachedObject, ResourceName } from '#syncer/context/resources.ts'
import type { Reconcile, Scope } from '#syncer/context/scope.ts'
import { copyHere, isShownFrom, setOfClaim, speaksFor, workloadOfLive } from '#syncer/rules/entitlement.ts'
import { eventUp, type MemberEvent } from '#syncer/transform/event-up.ts'

export const events = { group: '', version: 'v1', resource: 'events' } as const

/** An older Event (milliseconds) was shown before this process started, or nobody looks for it any more. */
const maxAgeMs = 300_000
/** An Event waits for its object to appear upstream, such as a pod being scheduled: seconds between two attempts. */
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

/**
 * Shows one Event upstream, unless its logical cluster has used up its budget, or it is about something that the member
 * does not have.
 */
export async function reconcileEvent(reconcile: Reconcile): Promise<ReconcileResult | undefined> {
  const { context, cluster, name, memberNamespace, clusterId } = reconcile
  if (memberNamespace === undefined || clusterId === undefined) return undefined
  const live = context.events.store.get(keyFor({ namespace: memberNamespace, name })) as
    DeepReadonly<MemberEvent> | undefined
  if (live === undefined) return undefined
  const ageMs = context.clock.now() - lastSeenMs(live)
  const resource = resourceOfKind[live.involvedObject?.kind ?? '']
  if (resource === undefined || ageMs > maxAgeMs) return undefined
  const { name: of = '', uid } = (live.involvedObject ?? {}) as { readonly name?: string; readonly uid?: string }
  const about = objectOf(reconcile, resource, of, uid)
  if (about === undefined) {
    const isComing = ageMs <= maxWaitMs && mayCome(reconcile, resource, of)
    return isComing ? { requeueAfterSeconds: waitSeconds } : undefined
  }
  if (!context.eventBudget.take(cluster, context.clock.now())) return undefined
  await write(reconcile, eventUp(live, { member: context.member.name, clusterId, about }))
  return undefined
}

/**
 * The upstream object for an object in the member; undefined if the member has no object with this name and uid.
 * ReplicaSets of one template have another name in each member.
 */
function objectOf(
  scope: Scope,
  resource: ResourceName,
  name: string,
  uid: string | undefined,
): CachedObject | undefined {
  const here = copyHere(scope, resource, name)
  if (here !== undefined) {
    const isSame = here.copy.metadata.uid === uid
    return isSame && speaksFor(scope, here.object) ? here.object : undefined
  }
  if (resource === 'replicasets') {
    const live = scope.live(resource, name)
    const workload = live && live.metadata.uid === uid ? workloadOfLive(scope, live) : undefined
    const reported = workload && scope.historyReportedAs(name)
    return reported?.metadata.ownerReferences?.some((owner) => owner.uid === workload?.metadata.uid)
      ? reported
      : undefined
  }
  const made = scope.upstream(resource, name)
  return made !== undefined && isShownFrom(scope, made, uid) ? made : undefined
}

/** Whether the object is in the member and its workload too, so that it may still appear upstream. */
function mayCome(scope: Scope, resource: ResourceName, name: string): boolean {
  const live = scope.live(resource, name)
  if (live === undefined) return scope.view.present
  return workloadOfLive(scope, live) !== undefined || setOfClaim(scope, name) !== undefined
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

async function write(reconcile: Reconcile, event: KubeObject): Promise<void> {
  const { member, ref, signal } = reconcile
  const client = reconcile.upstreamClient
  try {
    await client.create(events, event, { signal })
  } catch (error) {
    // The namespace is being deleted.
    if (isStatusError(error, 'Forbidden') || isStatusError(error, 'NotFound')) return
    if (!isStatusError(error, 'AlreadyExists')) throw error
    // Members choose names: an Event of another member, or of the tenant, stays as it is.
    const known = await client.tryGet<KubeObject>(events, ref, { signal })
    const isSame = uidOf(known) === uidOf(event) && known?.metadata.annotations?.[memberAnnotation] === member.name
    if (!isSame) return
    const { metadata: _metadata, ...content } = event
    await client.patch(events, ref, 'merge', cloneJson(content), { signal }).catch(tolerate('NotFound', 'Invalid'))
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
