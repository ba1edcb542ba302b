// The report of this member on an object, in an annotation of its own, and the status merged from the reports of all
// members.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import { timestamp } from '#async/index.ts'
import {
  canonicalJson,
  isComplete,
  isPaused,
  memberStatusAnnotation,
  parseAnnotation,
  placedOn,
  replicasOf,
  replicasOfCopy,
  sourceAnnotation,
  sourceOf,
  workloadKindOfObject,
  type MemberStatus,
  type StatusRule,
} from '#crds/index.ts'
import { conditionsWithSynced, statusChange } from '#placement/index.ts'
import type { CachedObject, ResourceName } from '#syncer/context/resources.ts'
import type { SyncContext } from '#syncer/context/sync-context.ts'
import { isCount } from '#syncer/rules/count.ts'
import { copyHere, speaksFor } from '#syncer/rules/entitlement.ts'
import type { SyncedObject } from '#syncer/rules/synced-object.ts'
import { revisionOf } from '#syncer/rules/upstream-history.ts'

/** Annotations of a merge patch that remove the member's report. */
export function clearedMemberStatus(member: string): Record<string, null> {
  return { [memberStatusAnnotation(member)]: null }
}

/** Writes the member's report if it has changed; undefined removes it. Returns the object after that. */
export async function writeMemberStatus(
  synced: SyncedObject,
  report: object | undefined,
): Promise<CachedObject | undefined> {
  const { object, member, gvr, ref, signal } = synced
  if (object === undefined) return undefined
  const annotation = memberStatusAnnotation(member.name)
  const text = report === undefined ? null : canonicalJson(report)
  if ((object.metadata.annotations?.[annotation] ?? null) === text) return object
  const metadata = { annotations: { [annotation]: text } }
  return await synced.upstreamClient.patch(gvr, ref, 'merge', { metadata }, { signal })
}

/**
 * Writes upstream why an object cannot be synced: in the member's report, and in condition Synced if its kind has
 * conditions.
 */
export async function reportError(synced: SyncedObject, error: string): Promise<void> {
  const { object, member, row } = synced
  if (object === undefined) return
  const before = parseAnnotation(object, memberStatusAnnotation(member.name))
  const written = await writeMemberStatus(synced, { ...before, error })
  if (written === undefined) return
  if (row.status !== undefined) await writeStatus(synced, row.status, written)
  else await writeSynced(synced, written)
}

/** Resources without a status rule whose status has conditions. */
const withConditions: ReadonlySet<ResourceName> = new Set(['services', 'pods'])

/**
 * Makes condition Synced of a Service or pod say what the reports of all members say; without errors there is no
 * condition.
 */
export async function writeSynced(synced: SyncedObject, object: CachedObject): Promise<void> {
  const { context, resource, gvr, ref, signal } = synced
  if (!withConditions.has(resource)) return
  const conditions = conditionsWithSynced(object as KubeObject, timestamp(context.clock.now()))
  if (conditions === undefined) return
  const patch = { metadata: { resourceVersion: object.metadata.resourceVersion }, status: { conditions } }
  await synced.upstreamClient.patch(gvr, ref, 'merge', patch, { subresource: 'status', signal })
}

/**
 * Removes the report of a former error. Reports on Services and objects with a status rule are replaced anyway, and the
 * status of a pod by that of the member's pod.
 */
export async function clearError(synced: SyncedObject): Promise<void> {
  if (synced.row.status !== undefined || synced.resource === 'services') return
  const drift = driftOf(synced)
  if (drift === undefined) await clearReport(synced)
  else await writeMemberStatus(synced, { drift }).catch(tolerate('NotFound'))
}

/** What others have changed in the copy, where that is reported. */
export function driftOf({ context, resource, cluster, namespace, name }: SyncedObject): string | undefined {
  return context.drifts.of({ resource, cluster, namespace, name })
}

/** Removes the report of a member that has no copy any more. */
export async function clearReport(synced: SyncedObject): Promise<void> {
  const { object, member, row } = synced
  if (object?.metadata.annotations?.[memberStatusAnnotation(member.name)] === undefined) return
  const written = await writeMemberStatus(synced, undefined).catch(tolerate('NotFound'))
  if (row.status !== undefined && written) await writeStatus(synced, row.status, written)
}

/** Writes this member's report on an object, then the status merged from all reports. */
export async function reconcileStatus(synced: SyncedObject, rule: StatusRule): Promise<void> {
  const { context, resource, object, name } = synced
  if (synced.memberNamespace === undefined || object === undefined) return
  const copy = speaksFor(synced, object) ? copyHere(synced, resource, name)?.copy : undefined
  const annotation = memberStatusAnnotation(synced.member.name)
  // Others may write the status: the operator writes that of an autoscaler whose workload is divided.
  const error = context.failures.messageOf({ resource, cluster: synced.cluster, ...synced.ref })
  if (copy === undefined && error === undefined && object.metadata.annotations?.[annotation] === undefined) return
  const before = parseAnnotation(object, annotation) as MemberStatus
  const hides = rule.joinsAddresses === true && !synced.view.serves
  const seen = copy
    ? { ...memberStatusOf(rule, { object, copy, before }), ...(hides && { hidesAddresses: true }) }
    : undefined
  const drift = driftOf(synced)
  const told = { ...(error !== undefined && { error }), ...(drift !== undefined && { drift }) }
  const { error: _error, drift: _drift, ...reported } = before
  const report = error === undefined && copy === undefined ? seen : { ...(seen ?? reported), ...told }
  const passing = `${resource} ${synced.cluster}|${synced.namespace}/${name}`
  if (report !== undefined && isPassing(context, object, before, report) && synced.isPostponed(passing)) return
  context.passing.forget(passing)
  if (report !== undefined && (await writeBoth(synced, rule, object, report))) return
  const written = report === undefined ? object : await writeMemberStatus(synced, report)
  if (written !== undefined) await writeStatus(synced, rule, written)
}

/**
 * Whether the rollout was under way when the member reported last, and still is: its next report replaces this one
 * soon.
 */
function isPassing({ member }: SyncContext, object: CachedObject, before: MemberStatus, report: MemberStatus): boolean {
  const kind = workloadKindOfObject(object)
  if (kind === undefined || kind.health.equal.length === 0 || before.error !== undefined || report.error !== undefined)
    return false
  if (object.metadata.annotations?.[memberStatusAnnotation(member.name)] === canonicalJson(report)) return false
  const copy = placedOn(object as KubeObject)[member.name]
  const replicas = replicasOfCopy(copy, replicasOf(object))
  const source = sourceOf(object['spec'], copy)
  return [before, report].every((one) => one.observed !== source || !isComplete(kind, one, replicas))
}

/**
 * Writes a changed report and the status that follows from it in one request, which does not count as a new generation
 * of the object. False if there is nothing to write in one, or if our cache is behind: then the report is written
 * first.
 */
async function writeBoth(
  synced: SyncedObject,
  rule: StatusRule,
  object: CachedObject,
  report: MemberStatus,
): Promise<boolean> {
  const { context, gvr, ref, signal } = synced
  const annotation = memberStatusAnnotation(context.member.name)
  const annotations = { [annotation]: canonicalJson(report), ...revisionOf(synced, object) }
  if (object.metadata.annotations?.[annotation] === annotations[annotation]) return false
  const metadata = { ...object.metadata, annotations: { ...object.metadata.annotations, ...annotations } }
  const change = changeOf(context, rule, { ...object, metadata })
  if (change === undefined) return false
  const patch = { metadata: { resourceVersion: object.metadata.resourceVersion, annotations }, status: change }
  try {
    await synced.upstreamClient.patch(gvr, ref, 'merge', patch, { subresource: 'status', signal })
    return true
  } catch (error) {
    if (isStatusError(error, 'Conflict')) return false
    throw error
  }
}

interface Reporting {
  readonly object: CachedObject
  readonly copy: CachedObject
  /** What this member reported last. */
  readonly before: MemberStatus
}

function memberStatusOf(rule: StatusRule, { object, copy, before }: Reporting): MemberStatus {
  const status = (copy['status'] ?? {}) as MemberStatus & { observedGeneration?: number }
  const caughtUp = !rule.observes || (status.observedGeneration ?? 0) >= (copy.metadata.generation ?? 0)
  const observed = caughtUp ? copy.metadata.annotations?.[sourceAnnotation] : before.observed
  const fields = [...rule.summed, ...rule.taken, ...(rule.joinsAddresses ? ['loadBalancer'] : [])]
  const summed = new Set(rule.summed)
  const values = fields
    .map((field) => [field, status[field]] as const)
    .filter(([field, value]) => (summed.has(field) ? isCount(value) : value !== undefined) && value !== 0)
  const conditions = isPaused(object) ? status.conditions : withoutOurPause(status.conditions, before)
  return {
    ...(observed !== undefined && { observed }),
    ...Object.fromEntries(values),
    ...(conditions && rule.conditions && { conditions }),
  }
}

/**
 * The conditions without our own pause: the scheduler pauses a copy that another copy is about to replace. The tenant's
 * rollout is not paused, so the member's earlier condition about it still holds.
 */
function withoutOurPause(conditions: MemberStatus['conditions'], before: MemberStatus): MemberStatus['conditions'] {
  return conditions
    ?.map((one) =>
      one['reason'] === 'DeploymentPaused' ? before.conditions?.find(({ type }) => type === one.type) : one,
    )
    .filter((one) => one !== undefined)
}

/**
 * The patch of the status subresource which takes the member's report from the object, with `metadata` and the status
 * that follows from the other reports.
 */
export function patchWithoutReport(
  context: SyncContext,
  rule: StatusRule,
  object: CachedObject,
  metadata: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const { [memberStatusAnnotation(context.member.name)]: _report, ...annotations } = object.metadata.annotations ?? {}
  const status = changeOf(context, rule, { ...object, metadata: { ...object.metadata, annotations } })
  return { metadata: { ...metadata, resourceVersion: object.metadata.resourceVersion }, ...(status && { status }) }
}

/** Writes the status that is merged from the reports of all members, if it differs from what is there. */
export async function writeStatus(synced: SyncedObject, rule: StatusRule, object: CachedObject): Promise<void> {
  const { context, gvr, ref, signal } = synced
  const status = changeOf(context, rule, object)
  if (status === undefined) return
  const patch = { metadata: { resourceVersion: object.metadata.resourceVersion }, status }
  await synced.upstreamClient.patch(gvr, ref, 'merge', patch, { subresource: 'status', signal })
}

function changeOf({ clock }: SyncContext, rule: StatusRule, object: CachedObject): Record<string, unknown> | undefined {
  return statusChange(object as KubeObject, { rule, now: timestamp(clock.now()) })
}
