// Events that a member writes about objects of logical clusters, shown upstream under the same name, with upstream names and
// uids. Upstream they expire as all Events do; their end in the member means nothing.
import { cloneJson, type KubeObject } from '../apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '../apimachinery/status/index.ts'
import type { DeepReadonly } from '../client/index.ts'
import type { ReconcileResult } from '../reconcile/index.ts'
import type { ResourceName } from './resources/resources.ts'
import { downstreamNamespaceOf, upstreamObject, type SyncContext, type Visit } from './sync-context.ts'
import { eventUp, type MemberEvent } from './transform/event-up.ts'

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

/** Shows one Event upstream, unless its logical cluster has used up its budget. */
export async function visitEvent(
  context: SyncContext,
  visit: Visit,
  signal: AbortSignal,
): Promise<ReconcileResult | undefined> {
  const { cluster, namespace, name } = visit
  const memberNamespace = downstreamNamespaceOf(context, visit)
  const live = memberNamespace === undefined ? undefined : context.memberEvent(memberNamespace, name)
  const id = context.upstream.ids.idOf(cluster)
  if (live === undefined || id === undefined) return undefined
  const ageMs = context.clock.now() - lastSeenMs(live)
  const resource = resourceOfKind[live.involvedObject?.kind ?? '']
  if (resource === undefined || ageMs > maxAgeMs) return undefined
  const about = objectOf(context, resource, { cluster, namespace, name: live.involvedObject?.name ?? '' })
  if (about === undefined) return ageMs > maxWaitMs ? undefined : { requeueAfterSeconds: waitSeconds }
  if (!context.eventBudget.take(cluster, context.clock.now())) return undefined
  const { name: aboutName = '', uid = '' } = about.metadata
  await write(context, visit, eventUp(live, { namespace, clusterId: id, name: aboutName, uid }), signal)
  return undefined
}

/** The upstream object for one of the member. ReplicaSets of one template have another name in each member. */
function objectOf(
  context: SyncContext,
  resource: ResourceName,
  ref: Pick<Visit, 'cluster' | 'namespace' | 'name'>,
): DeepReadonly<KubeObject> | undefined {
  const reported =
    resource === 'replicasets' ? context.historyReportedAs(ref.cluster, ref.namespace, ref.name) : undefined
  return reported ?? upstreamObject(context, resource, ref)
}

function lastSeenMs(event: DeepReadonly<MemberEvent>): number {
  const { series, lastTimestamp, eventTime, metadata } = event
  const text = series?.lastObservedTime ?? lastTimestamp ?? eventTime ?? metadata.creationTimestamp ?? ''
  const at = Date.parse(text)
  return Number.isNaN(at) ? 0 : at
}

async function write(
  { upstream }: SyncContext,
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
