// Tells tenants why their objects cannot be synced: an Event, and a condition or an annotation of the member on the
// object.
import { isStatusError } from '#apimachinery/status/index.ts'
import { workloadKindOfObject } from '#crds/index.ts'
import { isDeletionHeld } from '#syncer/context/deletion-guard.ts'
import type { CachedObject, ResourceName } from '#syncer/context/resources.ts'
import { Scope, type Reconcile } from '#syncer/context/scope.ts'
import type { FailureSubject } from '#syncer/context/sync-failures.ts'
import { requestKey, requestKindOf } from '#syncer/context/request.ts'
import { mayTellOf, workloadOfLive } from '#syncer/rules/entitlement.ts'
import { syncedKindOf } from '#syncer/rules/synced-kinds.ts'
import { SyncedObject } from '#syncer/rules/synced-object.ts'
import { serviceNameLabel } from '#syncer/transform/slice-labels.ts'
import { reportError } from './member-status.ts'
import { warnOf } from './warning-event.ts'

/** The name of a step, and the object on which its failure is told. */
export interface StepAbout {
  /** Names the step among all of this syncer: a success of the same step ends its failure. */
  readonly step: string
  /** The object whose tenant is told; undefined if there is none. Called after a failure only. */
  readonly subject: () => FailureSubject | undefined
  /** The subject, if it is not of a resource that the table of synced kinds has. */
  readonly object?: CachedObject
  /** The part of the subject that fails, such as `pod "web-1"`; absent: the subject itself. */
  readonly part?: string
}

/** The report on a copy of an object, which is a step of its own. */
export function aboutStatus({ resource, cluster, namespace, name }: SyncedObject): StepAbout {
  const subject = { resource, cluster, namespace, name }
  return { step: `status of ${resource} ${cluster}|${namespace}/${name}`, subject: () => subject, part: 'its status' }
}

/** A reconcile of an object that is not the copy of a tenant's object. The subject is the object that it belongs to. */
export function aboutRequest(reconcile: Reconcile): StepAbout {
  const { kind, cluster, namespace, name } = reconcile
  const step = requestKey(reconcile)
  switch (kind) {
    case 'namespace':
      return { step, subject: () => ({ resource: 'namespaces', cluster, namespace: '', name: namespace }) }
    case 'history':
      return { step, subject: () => ({ resource: 'deployments', cluster, namespace, name }), part: 'its ReplicaSets' }
    case 'pod':
      return { step, subject: () => workloadOf(reconcile, 'pods'), part: `pod "${name}"` }
    case 'slice':
    case 'remoteSlice':
      return { step, subject: () => serviceOf(reconcile), part: `EndpointSlice "${name}"` }
    default: {
      const resource = kind.slice(kind.indexOf(':') + 1) as ResourceName
      return { step, subject: () => workloadOf(reconcile, resource), part: `${resource} "${name}"` }
    }
  }
}

/** The workload to which an object in the member belongs (or the tenant's own pod); undefined if there is none. */
function workloadOf(reconcile: Reconcile, resource: ResourceName): FailureSubject | undefined {
  const live = reconcile.live(resource, reconcile.name)
  const workload = live && workloadOfLive(reconcile, live)
  const kind = workload && workloadKindOfObject(workload)
  if (workload === undefined || kind === undefined) return undefined
  const { cluster, namespace } = reconcile
  return { resource: kind.gvr.resource, cluster, namespace, name: workload.metadata.name ?? '' }
}

function serviceOf(reconcile: Reconcile): FailureSubject | undefined {
  const { kind, cluster, namespace, name } = reconcile
  const slice =
    kind === 'remoteSlice' ? reconcile.upstream('endpointslices', name) : reconcile.live('endpointslices', name)
  const service = slice?.metadata.labels?.[serviceNameLabel]
  return service === undefined ? undefined : { resource: 'services', cluster, namespace, name: service }
}

/**
 * Runs a step. If it fails for long or for good, the tenant learns why; after its success, that the failure is over.
 */
export async function tellingFailures<T>(reconcile: Reconcile, about: StepAbout, step: () => Promise<T>): Promise<T> {
  const { context } = reconcile
  let result: T
  try {
    result = await step()
  } catch (error) {
    await tellFailure(reconcile, about, error)
    throw error
  }
  const told = context.failures.clear(about.step)
  const kind = told && syncedKindOf(told.resource)
  // The next report on the subject does not contain the failure any more.
  if (told !== undefined && kind !== undefined) {
    const { cluster, namespace, name } = told
    context.enqueue({ kind: requestKindOf(kind.resource), cluster, namespace, name })
  }
  return result
}

async function tellFailure(
  reconcile: Reconcile,
  { step, subject: find, object: known, part }: StepAbout,
  error: unknown,
): Promise<void> {
  const { context, signal } = reconcile
  const { failures, member, log } = context
  // The loss of a member is told once on its workloads; suspended deletions are told the admin.
  if (signal.aborted || isDeletionHeld(error) || member.loss?.isLost() === true) return
  const subject = find()
  // A member may not tell tenants about objects that it does not have.
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
  const synced = kind && new SyncedObject(context, kind, subject, signal)
  const object =
    known ?? synced?.object ?? new Scope(context, subject).upstream(subject.resource as ResourceName, subject.name)
  try {
    if (object !== undefined) {
      const text = `member cluster "${member.name}": ${message}`
      await warnOf(reconcile, object, { reason: 'SyncFailed', message: text, repeats: true })
      if (synced !== undefined) await reportError(synced.again(), failures.messageOf(subject) ?? message)
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
