// What this member reports about an object, in an annotation of its own; and the status merged from all members' reports.
import { timestamp } from '#async/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import {
  canonicalJson,
  isComplete,
  isPaused,
  parseAnnotation,
  memberStatusAnnotation,
  placedOn,
  replicasOf,
  sourceAnnotation,
  sourceOf,
  workloadKindOfObject,
  type MemberStatus,
  type StatusRule,
} from '#crds/index.ts'
import { conditionsWithSynced, statusChange } from '#placement/index.ts'
import { isCount } from '#syncer/rules/count.ts'
import { copyHere, speaksFor } from '#syncer/rules/entitlement.ts'
import { gvrs, type ResourceName } from '#syncer/context/resources.ts'
import {
  downstreamNamespaceOf,
  isPostponed,
  upstreamObject,
  visitKindOf,
  type SyncContext,
  type Visit,
} from '#syncer/context/sync-context.ts'
import { revisionOf } from '#syncer/up/history.ts'

type UpstreamRef = Pick<Visit, 'cluster' | 'namespace' | 'name'>

/** Annotations of a merge patch that remove the member's report. */
export function clearedMemberStatus(member: string): Record<string, null> {
  return { [memberStatusAnnotation(member)]: null }
}

/** Writes the member's report if it has changed; undefined removes it. Returns the object after that. */
export async function writeMemberStatus(
  context: SyncContext,
  resource: ResourceName,
  ref: UpstreamRef,
  report: object | undefined,
  signal: AbortSignal,
): Promise<DeepReadonly<KubeObject> | undefined> {
  const object = upstreamObject(context, resource, ref)
  if (object === undefined) return undefined
  const annotation = memberStatusAnnotation(context.member.name)
  const text = report === undefined ? null : canonicalJson(report)
  if ((object.metadata.annotations?.[annotation] ?? null) === text) return object
  const { cluster, namespace, name } = ref
  const metadata = { annotations: { [annotation]: text } }
  return await context.upstream
    .client(cluster)
    .patch(gvrs[resource], { namespace, name }, 'merge', { metadata }, { signal })
}

/** Writes upstream why an object cannot be synced: in the member's report, and in condition Synced if its kind has conditions. */
export async function reportError(
  context: SyncContext,
  { resource, status: rule }: { readonly resource: ResourceName; readonly status?: StatusRule },
  ref: UpstreamRef,
  error: string,
  signal: AbortSignal,
): Promise<void> {
  const object = upstreamObject(context, resource, ref)
  if (object === undefined) return
  const before = parseAnnotation(object, memberStatusAnnotation(context.member.name))
  const written = await writeMemberStatus(context, resource, ref, { ...before, error }, signal)
  if (written === undefined) return
  if (rule !== undefined) await writeStatus(context, resource, rule, ref, written, signal)
  else await writeSynced(context, resource, ref, written, signal)
}

/** Resources without a status rule whose status has conditions. */
const withConditions: ReadonlySet<ResourceName> = new Set(['services', 'pods'])

/** Makes condition Synced of a Service or pod say what the reports of all members say; without errors there is no condition. */
export async function writeSynced(
  { upstream, clock }: SyncContext,
  resource: ResourceName,
  { cluster, namespace, name }: UpstreamRef,
  object: DeepReadonly<KubeObject>,
  signal: AbortSignal,
): Promise<void> {
  if (!withConditions.has(resource)) return
  const conditions = conditionsWithSynced(object as KubeObject, timestamp(clock.now()))
  if (conditions === undefined) return
  const patch = { metadata: { resourceVersion: object.metadata.resourceVersion }, status: { conditions } }
  const options = { subresource: 'status', signal } as const
  await upstream.client(cluster).patch(gvrs[resource], { namespace, name }, 'merge', patch, options)
}

/**
 * Removes the report of a former error. Reports on Services and objects with a status rule are replaced anyway, and the status of a
 * pod by that of the member's pod.
 */
export async function clearError(
  context: SyncContext,
  { resource, status }: { readonly resource: ResourceName; readonly status?: StatusRule },
  ref: UpstreamRef,
  signal: AbortSignal,
): Promise<void> {
  if (status !== undefined || resource === 'services') return
  const object = upstreamObject(context, resource, ref)
  if (object?.metadata.annotations?.[memberStatusAnnotation(context.member.name)] === undefined) return
  await writeMemberStatus(context, resource, ref, undefined, signal).catch(tolerate('NotFound'))
}

/** Removes the report of a member that has no copy any more. */
export async function clearReport(
  context: SyncContext,
  { resource, status: rule }: { readonly resource: ResourceName; readonly status?: StatusRule },
  ref: UpstreamRef,
  signal: AbortSignal,
): Promise<void> {
  const object = upstreamObject(context, resource, ref)
  if (object?.metadata.annotations?.[memberStatusAnnotation(context.member.name)] === undefined) return
  const written = await writeMemberStatus(context, resource, ref, undefined, signal).catch(tolerate('NotFound'))
  if (rule !== undefined && written) await writeStatus(context, resource, rule, ref, written, signal)
}

/** Writes this member's report on an object, then the status merged from all reports. */
export async function visitStatus(
  context: SyncContext,
  { resource, ...ref }: UpstreamRef & { readonly resource: ResourceName },
  rule: StatusRule,
  signal: AbortSignal,
): Promise<void> {
  const namespace = downstreamNamespaceOf(context, ref)
  const object = upstreamObject(context, resource, ref)
  if (namespace === undefined || object === undefined) return
  const copy = speaksFor(context, ref, object) ? copyHere(context, resource, ref)?.copy : undefined
  const annotation = memberStatusAnnotation(context.member.name)
  // Others may say what is in the status: of an autoscaler whose workload is divided, the operator does.
  const error = context.failures.messageOf({ resource, ...ref })
  if (copy === undefined && error === undefined && object.metadata.annotations?.[annotation] === undefined) return
  const before = parseAnnotation(object, annotation) as MemberStatus
  const hides = rule.joinsAddresses === true && !context.view(ref.cluster, ref.namespace).serves
  const seen = copy
    ? { ...memberStatusOf(rule, { object, copy, before }), ...(hides && { hidesAddresses: true }) }
    : undefined
  const report = error === undefined ? seen : { ...(seen ?? before), error }
  const name = `${resource} ${ref.cluster}|${ref.namespace}/${ref.name}`
  const visit = { ...ref, kind: visitKindOf(resource) }
  if (report !== undefined && isPassing(context, object, before, report) && isPostponed(context, name, visit)) return
  context.passing.forget(name)
  if (report !== undefined && (await writeBoth(context, resource, rule, { ref, object, report }, signal))) return
  const written = report === undefined ? object : await writeMemberStatus(context, resource, ref, report, signal)
  if (written !== undefined) await writeStatus(context, resource, rule, ref, written, signal)
}

/** Whether the rollout was under way when the member reported last, and still is: its next report replaces this one soon. */
function isPassing(
  { member }: SyncContext,
  object: DeepReadonly<KubeObject>,
  before: MemberStatus,
  report: MemberStatus,
): boolean {
  const kind = workloadKindOfObject(object)
  if (kind === undefined || kind.health.equal.length === 0 || before.error !== undefined || report.error !== undefined)
    return false
  if (object.metadata.annotations?.[memberStatusAnnotation(member.name)] === canonicalJson(report)) return false
  const copy = placedOn(object as KubeObject)[member.name]
  const replicas = copy?.replicas ?? replicasOf(object)
  const source = sourceOf(object['spec'], copy)
  return [before, report].every((one) => one.observed !== source || !isComplete(kind, one, replicas))
}

/**
 * Writes a changed report and the status that follows from it in one request, which does not count as a new generation of the
 * object. False if there is nothing to write in one, or if our cache is behind: then the report is written first.
 */
async function writeBoth(
  context: SyncContext,
  resource: ResourceName,
  rule: StatusRule,
  { ref, object, report }: { ref: UpstreamRef; object: DeepReadonly<KubeObject>; report: MemberStatus },
  signal: AbortSignal,
): Promise<boolean> {
  const annotation = memberStatusAnnotation(context.member.name)
  const annotations = { [annotation]: canonicalJson(report), ...revisionOf(context, object, ref) }
  if (object.metadata.annotations?.[annotation] === annotations[annotation]) return false
  const metadata = { ...object.metadata, annotations: { ...object.metadata.annotations, ...annotations } }
  const change = changeOf(context, rule, { ...object, metadata })
  if (change === undefined) return false
  const patch = { metadata: { resourceVersion: object.metadata.resourceVersion, annotations }, status: change }
  const { cluster, namespace, name } = ref
  try {
    const options = { subresource: 'status', signal } as const
    await context.upstream.client(cluster).patch(gvrs[resource], { namespace, name }, 'merge', patch, options)
    return true
  } catch (error) {
    if (isStatusError(error, 'Conflict')) return false
    throw error
  }
}

interface Reporting {
  readonly object: DeepReadonly<KubeObject>
  readonly copy: DeepReadonly<KubeObject>
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
 * The scheduler pauses a copy that another one is about to replace. The tenant's rollout is not paused, so what the member said
 * of it before still holds.
 */
function withoutOurPause(conditions: MemberStatus['conditions'], before: MemberStatus): MemberStatus['conditions'] {
  return conditions
    ?.map((one) =>
      one['reason'] === 'DeploymentPaused' ? before.conditions?.find(({ type }) => type === one.type) : one,
    )
    .filter((one) => one !== undefined)
}

/**
 * The patch of the status subresource which takes the member's report from the object, with `metadata` and the status that
 * follows from the other reports.
 */
export function patchWithoutReport(
  context: SyncContext,
  rule: StatusRule,
  object: DeepReadonly<KubeObject>,
  metadata: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const { [memberStatusAnnotation(context.member.name)]: _report, ...annotations } = object.metadata.annotations ?? {}
  const status = changeOf(context, rule, { ...object, metadata: { ...object.metadata, annotations } })
  return { metadata: { ...metadata, resourceVersion: object.metadata.resourceVersion }, ...(status && { status }) }
}

/** Writes the status that is merged from the reports of all members, if it differs from what is there. */
export async function writeStatus(
  context: SyncContext,
  resource: ResourceName,
  rule: StatusRule,
  { cluster, namespace, name }: UpstreamRef,
  object: DeepReadonly<KubeObject>,
  signal: AbortSignal,
): Promise<void> {
  const status = changeOf(context, rule, object)
  if (status === undefined) return
  const patch = { metadata: { resourceVersion: object.metadata.resourceVersion }, status }
  await context.upstream
    .client(cluster)
    .patch(gvrs[resource], { namespace, name }, 'merge', patch, { subresource: 'status', signal })
}

function changeOf(
  { clock }: SyncContext,
  rule: StatusRule,
  object: DeepReadonly<KubeObject>,
): Record<string, unknown> | undefined {
  return statusChange(object as KubeObject, { rule, now: timestamp(clock.now()) })
}
