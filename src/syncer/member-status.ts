// What this member reports about an object, in an annotation of its own; and the status merged from all members' reports.
import { timestamp } from '../async/index.ts'
import type { KubeObject } from '../apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '../apimachinery/status/index.ts'
import type { DeepReadonly } from '../client/index.ts'
import {
  canonicalJson,
  contentHash,
  parseAnnotation,
  memberStatusAnnotation,
  memberStatusesOf,
  isWorkloadResource,
  placedOn,
  sourceAnnotation,
  workloadKindOf,
  type WorkloadKind,
  type WorkloadResource,
  type WorkloadMemberStatus,
  type StatusCondition,
} from '../crds/index.ts'
import { mergeWorkloadStatus } from './merge-status.ts'
import { gvrs, type ResourceName } from './resources/resources.ts'
import {
  downstreamObject,
  downstreamNamespaceOf,
  upstreamObject,
  type SyncContext,
  type Visit,
} from './sync-context.ts'

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

/** Writes upstream why an object cannot be synced, with the member's message. Server errors are not reported: they are retried. */
export async function reportError(
  context: SyncContext,
  resource: ResourceName,
  ref: UpstreamRef,
  error: unknown,
  signal: AbortSignal,
): Promise<void> {
  if (!isStatusError(error) || error.code >= 500 || error.code === 429 || signal.aborted) return
  const object = upstreamObject(context, resource, ref)
  if (object === undefined) return
  const before = parseAnnotation(object as KubeObject, memberStatusAnnotation(context.member.name))
  try {
    const written = await writeMemberStatus(context, resource, ref, { ...before, error: error.message }, signal)
    const workload = workloadKindOf(resource)
    if (workload !== undefined && written !== undefined) await writeStatus(context, workload, ref, written, signal)
  } catch (failure) {
    context.log.debug('could not report a sync error', { ...ref, error: failure })
  }
}

/** Removes the report of a former error. Reports on workloads and Services are replaced anyway. */
export async function clearError(
  context: SyncContext,
  resource: ResourceName,
  ref: UpstreamRef,
  signal: AbortSignal,
): Promise<void> {
  if (isWorkloadResource(resource) || resource === 'services') return
  const object = upstreamObject(context, resource, ref)
  if (object?.metadata.annotations?.[memberStatusAnnotation(context.member.name)] === undefined) return
  await writeMemberStatus(context, resource, ref, undefined, signal).catch(tolerate('NotFound'))
}

interface WorkloadStatus extends WorkloadMemberStatus {
  observedGeneration?: number
  conditions?: StatusCondition[]
}

/** Writes this member's report on a workload, then the status merged from all reports. */
export async function visitWorkloadStatus(
  context: SyncContext,
  { resource, ...ref }: UpstreamRef & { readonly resource: WorkloadResource },
  signal: AbortSignal,
): Promise<void> {
  const kind = workloadKindOf(resource)
  if (kind === undefined) return
  const namespace = downstreamNamespaceOf(context, ref)
  const object = upstreamObject(context, resource, ref)
  if (namespace === undefined || object === undefined) return
  const copy = downstreamObject(context, resource, namespace, ref.name)
  const before = parseAnnotation(
    object as KubeObject,
    memberStatusAnnotation(context.member.name),
  ) as WorkloadMemberStatus
  const written =
    copy === undefined
      ? object
      : await writeMemberStatus(context, resource, ref, memberStatusOf(kind, copy, before), signal)
  if (written !== undefined) await writeStatus(context, kind, ref, written, signal)
}

function memberStatusOf(
  { health }: WorkloadKind,
  copy: DeepReadonly<KubeObject>,
  before: WorkloadMemberStatus,
): WorkloadMemberStatus {
  const status = (copy['status'] ?? {}) as WorkloadStatus
  const caughtUp = (status.observedGeneration ?? 0) >= (copy.metadata.generation ?? 0)
  const observed = caughtUp ? copy.metadata.annotations?.[sourceAnnotation] : before.observed
  const counts = health.counts.map((field) => [field, status[field]] as const).filter(([, count]) => count)
  const { conditions } = status
  return {
    ...(observed !== undefined && { observed }),
    ...Object.fromEntries(counts),
    ...(conditions && { conditions }),
  }
}

async function writeStatus(
  context: SyncContext,
  kind: WorkloadKind,
  { cluster, namespace, name }: UpstreamRef,
  object: DeepReadonly<KubeObject>,
  signal: AbortSignal,
): Promise<void> {
  const previous = (object['status'] ?? {}) as Record<string, unknown>
  const states = Object.fromEntries(
    Object.entries(placedOn(object as KubeObject)).map(([member, { state }]) => [member, state]),
  )
  const status = mergeWorkloadStatus({
    counts: kind.health.counts,
    generation: object.metadata.generation ?? 0,
    spec: contentHash(object['spec']),
    previous,
    reported: memberStatusesOf<WorkloadMemberStatus>(object as KubeObject),
    states,
    now: timestamp(context.clock.now()),
  })
  if (canonicalJson(status) === canonicalJson(previous)) return
  const cleared = Object.fromEntries(
    Object.keys(previous)
      .filter((field) => !(field in status))
      .map((field) => [field, null]),
  )
  const patch = { metadata: { resourceVersion: object.metadata.resourceVersion }, status: { ...cleared, ...status } }
  await context.upstream
    .client(cluster)
    .patch(kind.gvr, { namespace, name }, 'merge', patch, { subresource: 'status', signal })
}
