// The input of the move engine about one copy of a workload, from the reports of members about the workload and its
// Services.
import { serviceSelects } from '#apimachinery/selector/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import {
  areJoined,
  crossesGateways,
  hasEnded,
  isComplete,
  isConditionTrue,
  isForNames,
  isPaused,
  memberAnnotation,
  memberStatusesOf,
  placedOn,
  replicasOf,
  replicasOfCopy,
  sourceOf,
  syncerFinalizer,
  templateOf,
  workloadKindOfObject,
  type MemberStatus,
  type ServiceMemberStatus,
  type ServiceNetwork,
} from '#crds/index.ts'
import type { CopySeen } from '#placement/index.ts'

type CachedObject = DeepReadonly<KubeObject>

export interface Surroundings {
  /** Services that select the pods of the workload. */
  readonly services: Iterable<CachedObject>
  /** How pods of the member reach those of other members. */
  readonly networkOf: (member: string) => ServiceNetwork
  /** Whether the member answers. A move does not wait for other members to learn of endpoints if they do not answer. */
  readonly isReady: (member: string) => boolean
}

/** Knowledge about the copy of the workload in one member. */
export function copySeen(workload: CachedObject, member: string, { services, ...others }: Surroundings): CopySeen {
  const kind = workloadKindOfObject(workload)
  const reported = memberStatusesOf<MemberStatus>(workload as KubeObject)[member]
  const copy = placedOn(workload as KubeObject)[member]
  const replicas = replicasOfCopy(copy, replicasOf(workload))
  const spec = sourceOf(workload['spec'], copy)
  // A syncer writes no report on a pod: the status of the pod is that of the member's pod.
  const isPod = kind?.status === undefined
  const observed = isPod ? workload.metadata.annotations?.[memberAnnotation] === member : reported?.observed === spec
  const available = observed && (isPod ? isReadyOrEnded(workload) : isComplete(kind, reported ?? {}, replicas))
  const countsIn = (some: readonly CachedObject[]): number[][] => some.map((one) => countsOf(one, member, others))
  const counts = countsIn([...services])
  // Services that only give names to pods do not count: a name leads to its pod until the pod ends.
  const withdrawn = countsIn([...services].filter((service) => !isForNames(service)))
  return {
    observed,
    available,
    published: replicas === 0 || counts.every((known) => known.length > 0 && known.every((count) => count >= replicas)),
    endpoints: Math.max(0, ...withdrawn.flat()),
    endpointsGone: withdrawn.every((known) => known.every((count) => count === 0)),
    external: [...services].some((service) => isExternal(service, member)),
    isBusy: Array.isArray(reported?.['active']) && reported['active'].length > 0,
    pods: countIn(reported?.['replicas']),
    ready: countIn(reported?.['availableReplicas']),
    updated: countIn(reported?.['updatedReplicas']),
    isPaused: isPaused(workload),
    ...problemIn(reported),
    gone: reported === undefined && !workload.metadata.finalizers?.includes(syncerFinalizer(member)),
  }
}

/** Why the member does not take the copy, makes no pods of it, or does not get them ready. */
function problemIn(reported: MemberStatus | undefined): Pick<CopySeen, 'problem'> {
  const failed = (type: string, status: string): unknown =>
    reported?.conditions?.find((one) => one.type === type && one.status === status)?.['message']
  const problem = reported?.error ?? failed('ReplicaFailure', 'True') ?? failed('Progressing', 'False')
  return typeof problem === 'string' ? { problem } : {}
}

function countIn(value: unknown): number {
  return typeof value === 'number' ? value : 0
}

function isReadyOrEnded(pod: CachedObject): boolean {
  return hasEnded(pod) || isConditionTrue(pod as Parameters<typeof isConditionTrue>[0], 'Ready')
}

/**
 * How many of the Service's endpoints in `member` are known: one number for `member` itself, and one for each other
 * member that has reported, answers and can reach these endpoints. Empty if `member` has reported nothing.
 */
function countsOf(
  service: CachedObject,
  member: string,
  { networkOf, isReady }: Omit<Surroundings, 'services'>,
): number[] {
  const reported = memberStatusesOf<ServiceMemberStatus>(service as KubeObject)
  if (reported[member] === undefined) return []
  // Other members cannot know the endpoints of Services that do not cross gateways.
  const mayCross = networkOf(member) !== 'Gateway' || crossesGateways(service)
  return Object.entries(reported)
    .filter(
      ([other]) => other === member || (mayCross && areJoined(networkOf(member), networkOf(other)) && isReady(other)),
    )
    .map(([, { endpoints }]) => endpoints?.[member] ?? 0)
}

function isExternal(service: CachedObject, member: string): boolean {
  return memberStatusesOf<ServiceMemberStatus>(service as KubeObject)[member]?.external === true
}

/** Whether a Service leads to the pods of the workload. */
export function selects(service: CachedObject, workload: CachedObject): boolean {
  const template = templateOf(workload) as { metadata?: { labels?: Record<string, string> } } | undefined
  return serviceSelects(service, template?.metadata?.labels)
}
