// The rules for what a member may say about a logical cluster. Everything that is written upstream because of something
// read in a member asks here first. Locators, labels, owners and uids in objects of the member are never believed
// alone: the scheduler's record upstream must say that the member has the workload, and the object must be its copy, or
// made of it by a chain of controllers with the right uids and the names that they give.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { selectorFromObject } from '#apimachinery/selector/index.ts'
import {
  hasCopy,
  isPlaceable,
  memberAnnotation,
  memberUidAnnotation,
  placedOn,
  replicasOf,
  syncerFinalizer,
  templateOf,
  workloadKindOfObject,
  workloadKinds,
} from '#crds/index.ts'
import { locatorOf } from '#syncer/context/locator.ts'
import { isOrphanIn } from '#syncer/context/orphans.ts'
import { controllerOf } from '#syncer/context/owners.ts'
import { asOrdinalClaim, claimReferences, ingressBackends } from '#syncer/context/references.ts'
import type { CachedObject, ResourceName } from '#syncer/context/resources.ts'
import { Scope } from '#syncer/context/scope.ts'
import type { SyncContext } from '#syncer/context/sync-context.ts'
import type { FailureSubject } from '#syncer/context/sync-failures.ts'
import { inMember } from '#syncer/context/upstream.ts'
import { syncedKindOf } from './synced-kinds.ts'

/**
 * Whether the member has, or should have, something of the workload: the scheduler placed it there, or our finalizer is
 * still on it.
 */
export function isHere({ member }: Pick<SyncContext, 'member'>, workload: CachedObject): boolean {
  if (!isPlaceable(workload)) return false
  return (
    hasCopy(placedOn(workload as KubeObject)[member.name]) ||
    workload.metadata.finalizers?.includes(syncerFinalizer(member.name)) === true
  )
}

/** The upstream object, if the member has, or should have, a copy of it. */
export function objectHere(scope: Scope, resource: ResourceName, name: string): CachedObject | undefined {
  const kind = syncedKindOf(resource)
  const object = kind && scope.upstream(resource, name)
  if (object === undefined || kind === undefined) return undefined
  const isWanted = kind.workload ? isHere(scope, object) : kind.wanted(object, scope.view, scope.member.name)
  return isWanted ? object : undefined
}

/** The object of objectHere with its copy; undefined if there is no such object or the member has no copy of it. */
export function copyHere(
  scope: Scope,
  resource: ResourceName,
  name: string,
): { readonly object: CachedObject; readonly copy: CachedObject } | undefined {
  const object = objectHere(scope, resource, name)
  if (object === undefined) return undefined
  const copy = scope.live(resource, name)
  return copy !== undefined && isCopyOf(scope, copy, object) ? { object, copy } : undefined
}

/**
 * Whether the member may report on an object that is in all members with a workload of its namespace: on a budget, a
 * Service or an Ingress, only members with pods that the object selects may report.
 */
export function speaksFor(scope: Scope, object: CachedObject): boolean {
  switch (object.kind) {
    case 'PodDisruptionBudget': {
      const { selector } = (object['spec'] ?? {}) as { selector?: object }
      return runsSelected(scope, selector)
    }
    case 'Service': {
      const { selector = {} } = (object['spec'] ?? {}) as { selector?: Readonly<Record<string, string>> }
      const isEmpty = Object.keys(selector).length === 0
      return runsSelected(scope, isEmpty ? undefined : { matchLabels: selector })
    }
    case 'Ingress': {
      const services = ingressBackends(object).map((name) => scope.upstream('services', name))
      return services.length === 0
        ? scope.view.present
        : services.some((service) => service !== undefined && speaksFor(scope, service))
    }
    default:
      return true
  }
}

/**
 * Whether the member has a workload whose pod template matches the selector. If there is no selector, or no workload
 * upstream matches it, every member with a workload of the namespace counts.
 */
function runsSelected(scope: Scope, source: object | undefined): boolean {
  const { context, cluster, namespace, member } = scope
  if (!scope.view.present) return false
  if (source === undefined) return true
  const selector = selectorFromObject(source)
  const isSelected = (workload: CachedObject): boolean => {
    const template = templateOf(workload) as { metadata?: { labels?: Readonly<Record<string, string>> } } | undefined
    return selector.matches(template?.metadata?.labels ?? {})
  }
  for (const index of context.upstream.workloadsByMember)
    for (const workload of index.of(inMember(`${cluster}|${namespace}`, member.name)))
      if (isHere(scope, workload) && isSelected(workload)) return true
  for (const { gvr } of workloadKinds)
    for (const workload of scope.allUpstream(gvr.resource))
      if (isPlaceable(workload) && isSelected(workload)) return false
  return true
}

/**
 * Whether an object in the member is the copy of the upstream object, and not of a former object of the same name. The
 * object was looked up in the namespace that we derive from the upstream one.
 */
function isCopyOf(
  { clusterId, namespace }: Scope,
  live: CachedObject,
  { metadata: { name, uid } }: CachedObject,
): boolean {
  const locator = locatorOf(live)
  return (
    locator?.uid === uid &&
    locator?.name === name &&
    live.metadata.name === name &&
    locator?.namespace === namespace &&
    locator.clusterId === clusterId
  )
}

/** The uid of the member's object of which this upstream object is a copy. */
export function memberUid({ metadata }: CachedObject): string | undefined {
  return metadata.annotations?.[memberUidAnnotation] ?? metadata.uid
}

/**
 * Whether the upstream object was copied up from the member's object with this uid. Only the installation can write the
 * annotations that tell this.
 */
export function isShownFrom(
  { member }: Pick<SyncContext, 'member'>,
  shown: CachedObject,
  uid: string | undefined,
): boolean {
  return shown.metadata.annotations?.[memberAnnotation] === member.name && uid !== undefined && memberUid(shown) === uid
}

/**
 * The controller, in the member, of an object there; undefined unless it has the uid in the owner reference and gives
 * objects of this kind such names.
 */
export function controllerHere(scope: Scope, made: CachedObject): CachedObject | undefined {
  const reference = controllerOf(made)
  const kind = workloadKinds.find((row) => row.kind === reference?.kind && row.apiVersion === reference.apiVersion)
  if (reference === undefined || kind === undefined) return undefined
  const owner = scope.live(kind.gvr.resource, reference.name)
  return owner?.metadata.uid === reference.uid && makes(reference, made) ? owner : undefined
}

/**
 * The upstream workload to which an object in the member belongs: as its copy, or through the objects between them,
 * such as the ReplicaSet of a Deployment or the Job of a CronJob. Undefined if the member does not have that workload.
 */
export function workloadOfLive(scope: Scope, live: CachedObject): CachedObject | undefined {
  // Four: the longest chain is claim, pod, Job, CronJob.
  for (let depth = 0, one = live; depth < 4; depth++) {
    const own = locatorOf(one) === undefined ? undefined : workloadKindOfObject(one)
    if (own !== undefined) {
      const object = objectHere(scope, own.gvr.resource, one.metadata.name ?? '')
      return object !== undefined && isCopyOf(scope, one, object) ? object : undefined
    }
    const controller = controllerHere(scope, one)
    if (controller === undefined) return orphanUpstream(scope, one)
    one = controller
  }
  return undefined
}

/**
 * The upstream copy of a ReplicaSet or Job of the member whose workload was deleted without it: it is its own workload.
 */
function orphanUpstream(scope: Scope, live: CachedObject): CachedObject | undefined {
  if (controllerOf(live) !== undefined) return undefined
  const { kind, metadata } = live
  const { name = '', uid } = metadata
  const shown =
    kind === 'ReplicaSet' ? scope.historyReportedAs(name) : kind === 'Job' ? scope.upstream('jobs', name) : undefined
  if (shown === undefined || !isOrphanIn(shown, scope.member.name)) return undefined
  return kind === 'ReplicaSet' || isShownFrom(scope, shown, uid) ? shown : undefined
}

/**
 * The StatefulSet of the member whose controller makes the claim: with its template, for an ordinal that the member
 * has.
 */
export function setOfClaim(scope: Scope, name: string): CachedObject | undefined {
  const claim = asOrdinalClaim(name)
  if (claim === undefined) return undefined
  for (const set of scope.allUpstream('statefulsets')) {
    const isOfSet = claimReferences(set).some((one) => `${one.resource}/${one.name}` === claim.reference)
    if (isOfSet && isHere(scope, set) && hasOrdinal(scope, set, claim.ordinal)) return set
  }
  return undefined
}

/** Whether the member is to run the pod of this ordinal. */
export function hasOrdinal({ member }: Scope, set: CachedObject, ordinal: number): boolean {
  const { start, end } = ordinalsIn(set, member.name)
  return start <= ordinal && ordinal < end
}

/** The ordinals of a StatefulSet, from `start` to before `end`; with `member`: only those that it is to have. */
export function ordinalsIn(set: CachedObject, member = ''): { readonly start: number; readonly end: number } {
  const { ordinals } = (set['spec'] ?? {}) as { ordinals?: { start?: number } }
  const decided = placedOn(set as KubeObject)[member]
  const start = decided?.start ?? ordinals?.start ?? 0
  return { start, end: start + (decided?.replicas ?? replicasOf(set)) }
}

/** Whether a failure may be told to the tenant of the subject: a member chooses the words. */
export function mayTellOf(context: SyncContext, { resource, cluster, namespace, name }: FailureSubject): boolean {
  if (resource === 'namespaces') {
    const { needed } = context.views.of(cluster, name)
    return needed || context.hasExported(cluster, name)
  }
  const scope = new Scope(context, { cluster, namespace })
  return objectHere(scope, resource as ResourceName, name) !== undefined && scope.view.needed
}

/** The suffix that Kubernetes appends to generated names. */
const random = /^[bcdfghjklmnpqrstvwxz2456789]{5}$/
const maxGeneratedPrefix = 58
const hash = /^[a-z0-9]{1,10}$/
const number = /^(0|[1-9]\d*)$/

type IsName = (owner: string, name: string) => boolean
const after =
  (suffix: RegExp): IsName =>
  (owner, name) =>
    name.startsWith(`${owner}-`) && suffix.test(name.slice(owner.length + 1))
const generated: IsName = (owner, name) =>
  random.test(name.slice(-5)) && name.slice(0, -5) === `${owner}-`.slice(0, maxGeneratedPrefix)
/** Whether a Job gives a pod this name. The index of an Indexed Job stays whole where the name of the Job is cut. */
const generatedByJob: IsName = (owner, name) => {
  if (generated(owner, name)) return true
  const index = /-(?:0|[1-9]\d*)-$/.exec(name.slice(0, -5))?.[0] ?? ''
  const kept = maxGeneratedPrefix - index.length
  return index !== '' && random.test(name.slice(-5)) && name.slice(0, -5) === `${owner.slice(0, kept)}${index}`
}
/** Kubernetes cuts the name of the workload before the hash. */
const revision: IsName = (owner, name) => after(hash)(owner.slice(0, 223), name)

/** By kind of the controller and kind of the object: whether it gives such a name. It makes no other kinds. */
const madeNames: Readonly<Record<string, IsName>> = {
  'Deployment ReplicaSet': after(hash),
  'ReplicaSet Pod': generated,
  'ReplicationController Pod': generated,
  'DaemonSet Pod': generated,
  'Job Pod': generatedByJob,
  'StatefulSet Pod': after(number),
  'CronJob Job': after(number),
  'StatefulSet ControllerRevision': revision,
  'DaemonSet ControllerRevision': revision,
  // The claims of templates, which the StatefulSet owns if it deletes them. Their names are compared with the
  // templates.
  'StatefulSet PersistentVolumeClaim': (owner, name) =>
    asOrdinalClaim(name)?.reference.endsWith(`-${owner}-*`) ?? false,
  'Pod PersistentVolumeClaim': (owner, name) =>
    name.startsWith(`${owner}-`) || (asOrdinalClaim(name) !== undefined && name.endsWith(`-${owner}`)),
}

/** Whether a controller makes objects of this kind with such names. */
export function makes(owner: Pick<CachedObject, 'kind'> & { readonly name: string }, made: CachedObject): boolean {
  return madeNames[`${owner.kind} ${made.kind}`]?.(owner.name, made.metadata.name ?? '') ?? false
}
