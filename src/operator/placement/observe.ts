// The input of one decision about a workload, read from caches only.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { keyFor, namespaceKeyOf, type DeepReadonly } from '#client/index.ts'
import { lostAfterMs, placedOn, type LogicalCluster, type PlacedOn, type ServiceNetwork } from '#crds/index.ts'
import {
  applicableRules,
  choiceOf,
  failoverInMs,
  limitMs,
  memberFacts,
  unreachableSince,
  type Candidate,
  type Choice,
  type CopySeen,
  type Rebalancing,
} from '#placement/index.ts'
import { copySeen, selects } from './copy-seen.ts'
import type { PlacementInputs } from './placement-inputs.ts'
import { parseWorkloadKey, workloadKey, type WorkloadRef } from './workload-key.ts'

type CachedObject = DeepReadonly<KubeObject>

/** Another workload of the namespace. */
export interface Sibling {
  readonly placedOn: PlacedOn
  /** Computed on demand, because it costs as much as a decision. Undefined: its logical cluster is not known yet. */
  readonly choice: () => Choice | undefined
}

export interface Observed {
  readonly choice: Choice
  /** The decision that is written on the workload now. */
  readonly placedOn: PlacedOn
  readonly seen: (member: string) => CopySeen
  readonly networkOf: (member: string) => ServiceNetwork
  /** Computed on demand: only a copy that could drain needs them. */
  readonly siblings: () => Iterable<Sibling>
}

/** Everything about one workload; undefined while its logical cluster is not known. */
export function observe(
  ref: WorkloadRef,
  workload: CachedObject,
  inputs: PlacementInputs,
  nowMs: number,
): Observed | undefined {
  const choice = choiceFor(ref, workload, inputs, nowMs)
  if (choice === undefined) return undefined
  const namespaceKey = namespaceKeyOf(ref.objectKey)
  const services = inputs.servicesIn(namespaceKey).filter((service) => selects(service, workload))
  const networkOf = (member: string): ServiceNetwork => inputs.networkOf(member)
  const isReady = (member: string): boolean => inputs.isReady(member)
  return {
    choice,
    placedOn: placedOn(workload as KubeObject),
    // Guards ask for the same member again and again.
    seen: oncePerMember((member) => ({
      ...copySeen(workload, member, { services, networkOf, isReady }),
      // A fenced member cannot be asked; an admin has made sure that nothing is left there.
      ...(inputs.isFenced(member) && { gone: true, endpointsGone: true, isFenced: true }),
      ...lostOf(choice, member, nowMs),
    })),
    networkOf,
    siblings: () => siblingsOf(ref, namespaceKey, inputs, nowMs),
  }
}

function oncePerMember<T>(compute: (member: string) => T): (member: string) => T {
  const known = new Map<string, T>()
  return (member) => {
    let found = known.get(member)
    if (found === undefined) known.set(member, (found = compute(member)))
    return found
  }
}

/** Whether the member of a copy is lost. */
export function lostOf({ candidates, demand }: Choice, member: string, nowMs: number): Pick<CopySeen, 'lost'> {
  const candidate = candidates.find(({ name }) => name === member)
  if (candidate?.unreachableMs === undefined || candidate.unreachableMs < lostAfterMs) return {}
  const failoverMs = failoverInMs(candidate, demand)
  return { lost: failoverMs === undefined ? {} : { failoverAtMs: nowMs - candidate.unreachableMs + limitMs(demand) } }
}

function* siblingsOf(
  ref: WorkloadRef,
  namespaceKey: string,
  inputs: PlacementInputs,
  nowMs: number,
): Generator<Sibling> {
  for (const key of inputs.workloadKeysInNamespace(namespaceKey)) {
    const other = parseWorkloadKey(key)
    if (other === undefined || (other.objectKey === ref.objectKey && other.kind.kind === ref.kind.kind)) continue
    const workload = inputs.workload(other)
    if (workload === undefined || workload.metadata.deletionTimestamp !== undefined) continue
    yield { placedOn: placedOn(workload as KubeObject), choice: () => choiceFor(other, workload, inputs, nowMs) }
  }
}

function choiceFor(
  { kind, cluster, namespace, objectKey }: WorkloadRef,
  workload: CachedObject,
  inputs: PlacementInputs,
  nowMs: number,
): Choice | undefined {
  const owner = inputs.clusters.store.get(cluster)
  if (owner === undefined) return undefined
  const key = workloadKey(kind, objectKey)
  const rebalancing = inputs.rebalancing.get(key)
  const candidates = candidatesFor(owner, { workload, key }, inputs, nowMs)
  const claims = inputs.claimsIn(namespaceKeyOf(objectKey))
  return choiceOfObject({ workload, cluster, namespace, candidates, claims, rebalancing }, inputs, nowMs)
}

interface ObjectToPlace {
  readonly workload: CachedObject
  readonly cluster: string
  /** Empty for an object without a namespace. */
  readonly namespace: string
  readonly candidates: readonly Candidate[]
  readonly claims: Iterable<CachedObject>
  readonly rebalancing?: Rebalancing | undefined
}

/** The question where an object should run; undefined while its logical cluster is not known. */
export function choiceOfObject(
  { workload, cluster, namespace, candidates, claims, rebalancing }: ObjectToPlace,
  inputs: PlacementInputs,
  nowMs: number,
): Choice | undefined {
  const owner = inputs.clusters.store.get(cluster)
  if (owner === undefined) return undefined
  const namespaceObject = inputs.namespaces.store.get(keyFor({ cluster, name: namespace }))
  return choiceOf({
    workload,
    namespace,
    namespaceObject,
    rules: applicableRules(
      {
        ofTenant: inputs.tenantPlacementsIn(cluster),
        ofAdmins: [...inputs.adminPlacements.store.list(), ...inputs.inheritedPlacements(cluster)],
      },
      { clusterLabels: inputs.labelsOf(cluster), namespaceLabels: namespaceObject?.metadata.labels },
    ),
    claims: [...claims],
    members: () => inputs.members.store.list(),
    candidates,
    near: inputs.membersOfOthers(`${cluster}|${namespace}`, workload),
    keyOf: (name, isTenants) => keyFor(isTenants ? { cluster, name } : { name }),
    ...(rebalancing && { rebalancing }),
    nowMs,
  })
}

/** All members as placement sees them. */
export function candidatesFor(
  { metadata: { name: cluster } }: DeepReadonly<LogicalCluster>,
  { workload, key }: { readonly workload: CachedObject; readonly key: string },
  inputs: PlacementInputs,
  nowMs: number,
): Candidate[] {
  const isFrozen = inputs.isFailoverFrozen
  const labels = inputs.labelsOf(cluster)
  return inputs.members.store.list().map((member) => {
    const { name } = member.metadata
    const facts = memberFacts(member, { clusterLabels: labels, workload })
    const since = unreachableSince(member)
    return {
      ...facts,
      state: inputs.stateOf(member),
      load: inputs.loadOf(name),
      ownLoad: inputs.loadOfCluster(cluster, name),
      isFenced: inputs.isFenced(name),
      ...(since !== undefined && { unreachableMs: nowMs - since, isFailoverFrozen: isFrozen }),
      ...(facts.limits && { requested: inputs.usage.requestedIn(name, { without: key }) }),
    }
  })
}
