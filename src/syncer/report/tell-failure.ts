// Tells tenants why their objects cannot be synced: an Event, and a condition or an annotation of the member on the object.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import { workloadKindOfObject } from '#crds/index.ts'
import { isDeletionHeld } from '#syncer/context/deletion-guard.ts'
import { mayTellOf, workloadOfLive } from '#syncer/rules/entitlement.ts'
import { reportError } from './member-status.ts'
import type { ResourceName } from '#syncer/context/resources.ts'
import {
  downstreamNamespaceOf,
  downstreamObject,
  upstreamObject,
  visitKey,
  visitKindOf,
  type SyncContext,
  type Visit,
} from '#syncer/context/sync-context.ts'
import type { FailureSubject } from '#syncer/context/sync-failures.ts'
import { syncedKindOf } from '#syncer/rules/synced-kinds.ts'
import { serviceNameLabel } from '#syncer/transform/slice-labels.ts'
import { warnOf } from './warning-event.ts'

/** What a step is about. */
export interface StepAbout {
  /** Names the step among all of this syncer: a success of the same step ends its failure. */
  readonly step: string
  /** The object whose tenant is told; undefined if there is none, or no more. Asked after a failure only. */
  readonly subject: () => FailureSubject | undefined
  /** The subject, if it is not of a resource that the table of synced kinds has. */
  readonly object?: DeepReadonly<KubeObject>
  /** What of the subject fails, such as `pod "web-1"`; absent: the subject itself. */
  readonly part?: string
}

/** The report on a copy of an object, which is a step of its own. */
export function aboutStatus(resource: ResourceName, { cluster, namespace, name }: Visit): StepAbout {
  const subject = { resource, cluster, namespace, name }
  return { step: `status of ${resource} ${cluster}|${namespace}/${name}`, subject: () => subject, part: 'its status' }
}

/** A visit of what is no copy of a tenant's object: the tenant is told on the object for which it is there. */
export function aboutVisit(context: SyncContext, visit: Visit): StepAbout {
  const { kind, cluster, namespace, name } = visit
  const step = visitKey(visit)
  switch (kind) {
    case 'namespace':
      return { step, subject: () => ({ resource: 'namespaces', cluster, namespace: '', name: namespace }) }
    case 'history':
      return { step, subject: () => ({ resource: 'deployments', cluster, namespace, name }), part: 'its ReplicaSets' }
    case 'pod':
      return { step, subject: () => workloadOf(context, visit, 'pods'), part: `pod "${name}"` }
    case 'slice':
    case 'remoteSlice':
      return { step, subject: () => serviceOf(context, visit), part: `EndpointSlice "${name}"` }
    default: {
      const resource = kind.slice(kind.indexOf(':') + 1) as ResourceName
      return { step, subject: () => workloadOf(context, visit, resource), part: `${resource} "${name}"` }
    }
  }
}

/** The workload of what a controller of the member made, or a pod that its tenant made. */
function workloadOf(context: SyncContext, visit: Visit, resource: ResourceName): FailureSubject | undefined {
  const memberNamespace = downstreamNamespaceOf(context, visit)
  const live = memberNamespace && downstreamObject(context, resource, memberNamespace, visit.name)
  const workload = live ? workloadOfLive(context, visit, live) : undefined
  const kind = workload && workloadKindOfObject(workload)
  if (workload === undefined || kind === undefined) return undefined
  const { cluster, namespace } = visit
  return { resource: kind.gvr.resource, cluster, namespace, name: workload.metadata.name ?? '' }
}

function serviceOf(context: SyncContext, { kind, cluster, namespace, name }: Visit): FailureSubject | undefined {
  const memberNamespace = downstreamNamespaceOf(context, { cluster, namespace })
  const slice =
    kind === 'remoteSlice'
      ? upstreamObject(context, 'endpointslices', { cluster, namespace, name })
      : memberNamespace && downstreamObject(context, 'endpointslices', memberNamespace, name)
  const service = slice ? slice.metadata.labels?.[serviceNameLabel] : undefined
  return service === undefined ? undefined : { resource: 'services', cluster, namespace, name: service }
}

/** Runs a step. If it fails for long or for good, the tenant learns why; after its success, that the failure is over. */
export async function tellingFailures<T>(
  context: SyncContext,
  about: StepAbout,
  step: () => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  let result: T
  try {
    result = await step()
  } catch (error) {
    await tellFailure(context, about, error, signal)
    throw error
  }
  const told = context.failures.clear(about.step)
  const kind = told && syncedKindOf(told.resource)
  // Its next report says nothing of the failure any more.
  if (told !== undefined && kind !== undefined) {
    const { cluster, namespace, name } = told
    context.enqueue({ kind: visitKindOf(kind.resource), cluster, namespace, name })
  }
  return result
}

async function tellFailure(
  context: SyncContext,
  { step, subject: find, object: known, part }: StepAbout,
  error: unknown,
  signal: AbortSignal,
): Promise<void> {
  const { failures, member, log } = context
  // Of a lost member, its workloads are told once; of suspended deletions, the admin.
  if (signal.aborted || isDeletionHeld(error) || member.loss?.isLost() === true) return
  const subject = find()
  // What a member refuses of what it does not have, it may not tell anybody.
  if (subject === undefined || (known === undefined && !mayTellOf(context, subject))) return
  const id = context.upstream.ids.idOf(subject.cluster)
  const said = isStatusError(error) ? error.message : 'kcp failed; its log says more'
  // The tenant knows namespaces by their own names.
  const words = id === undefined ? said : said.replaceAll(`${id}-`, '')
  const message = failures.note(step, subject, {
    message: part === undefined ? words : `${part}: ${words}`,
    isFinal: isFinal(error),
  })
  if (message === undefined) return
  const kind = syncedKindOf(subject.resource)
  const object = known ?? upstreamObject(context, subject.resource as ResourceName, subject)
  try {
    if (object !== undefined) {
      const text = `member cluster "${member.name}": ${message}`
      await warnOf(context, object, subject, { reason: 'SyncFailed', message: text, repeats: true }, signal)
      if (kind !== undefined) await reportError(context, kind, subject, failures.messageOf(subject) ?? message, signal)
    }
    failures.markTold(step)
  } catch (failure) {
    signal.throwIfAborted()
    log.debug('could not report a sync error', { ...subject, error: failure })
  }
}

/** Codes after which another attempt may succeed, although the request stays the same. */
const passingCodes: ReadonlySet<number> = new Set([404, 408, 409, 429])

/** Whether another attempt has the same result until somebody changes the object or the member. */
function isFinal(error: unknown): boolean {
  if (!isStatusError(error) || error.code >= 500 || passingCodes.has(error.code)) return false
  // The namespace in the member is still being deleted; afterwards it is created again.
  return !(error.status.details?.causes ?? []).some(({ reason }) => reason === 'NamespaceTerminating')
}
