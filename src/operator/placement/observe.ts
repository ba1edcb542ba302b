// What one visit to a workload looks at, read from caches only.
import type { KubeObject } from '../../apimachinery/meta/index.ts'
import { keyFor, namespaceKeyOf, type DeepReadonly } from '../../client/index.ts'
import { isConditionTrue, placedOn, type LogicalCluster, type PlacedOn, type Placement } from '../../crds/index.ts'
import {
  currentMembers,
  targetOf,
  type Candidate,
  type CopySeen,
  type PlacementRule,
  type Target,
} from '../../placement/index.ts'
import { copySeen } from './copy-seen.ts'
import { matches, type PlacementInputs } from './placement-inputs.ts'
import { parseWorkloadKey, type WorkloadRef } from './workload-key.ts'

type CachedObject = DeepReadonly<KubeObject>

/** The question which members a workload should run on. */
export interface Choice {
  readonly namespace: string
  readonly target: Target
  readonly candidates: readonly Candidate[]
  /** Members with a copy now. */
  readonly current: readonly string[]
  /** Members with another workload of the namespace. */
  readonly near: readonly string[]
}

/** Another workload of the namespace. */
export interface Sibling {
  readonly placedOn: PlacedOn
  /** Undefined: its logical cluster is not known yet. */
  readonly choice: Choice | undefined
}

export interface Observed {
  readonly choice: Choice
  /** The decision that is written on the workload now. */
  readonly placedOn: PlacedOn
  readonly seen: (member: string) => CopySeen
  readonly isFlat: (member: string) => boolean
  /** Computed on demand: only a copy that could drain needs them. */
  readonly siblings: () => Iterable<Sibling>
}

/** Everything about one workload; undefined while its logical cluster is not known. */
export function observe(ref: WorkloadRef, workload: CachedObject, inputs: PlacementInputs): Observed | undefined {
  const choice = choiceFor(ref, workload, inputs)
  if (choice === undefined) return undefined
  const namespaceKey = namespaceKeyOf(ref.objectKey)
  const services = inputs.servicesIn(namespaceKey)
  const isFlat = (member: string): boolean => inputs.isFlat(member)
  const isReady = (member: string): boolean => inputs.isReady(member)
  return {
    choice,
    placedOn: placedOn(workload as KubeObject),
    seen: (member) => copySeen(workload, member, { services, isFlat, isReady }),
    isFlat,
    siblings: () => siblingsOf(ref, namespaceKey, inputs),
  }
}

function* siblingsOf(ref: WorkloadRef, namespaceKey: string, inputs: PlacementInputs): Generator<Sibling> {
  for (const key of inputs.workloadKeysInNamespace(namespaceKey)) {
    const other = parseWorkloadKey(key)
    if (other === undefined || (other.objectKey === ref.objectKey && other.kind.kind === ref.kind.kind)) continue
    const workload = inputs.workload(other)
    if (workload === undefined || workload.metadata.deletionTimestamp !== undefined) continue
    yield { placedOn: placedOn(workload as KubeObject), choice: choiceFor(other, workload, inputs) }
  }
}

function choiceFor(
  { cluster, namespace, objectKey }: WorkloadRef,
  workload: CachedObject,
  inputs: PlacementInputs,
): Choice | undefined {
  const owner = inputs.clusters.store.get(cluster)
  if (owner === undefined) return undefined
  const namespaceObject = inputs.namespaces.store.get(keyFor({ cluster, name: namespace }))
  return {
    namespace,
    target: targetOf({
      object: workload.metadata.annotations,
      namespace: namespaceObject?.metadata.annotations,
      placements: [tenantRules(cluster, namespaceObject, inputs), adminRules(owner, namespaceObject, inputs)],
    }),
    candidates: candidatesFor(owner, inputs),
    current: currentMembers(placedOn(workload as KubeObject)),
    near: inputs.membersOfOthers(namespaceKeyOf(objectKey), workload),
  }
}

function candidatesFor({ metadata: { labels } }: DeepReadonly<LogicalCluster>, inputs: PlacementInputs): Candidate[] {
  return inputs.members.store.list().map((member) => ({
    name: member.metadata.name,
    ready: isConditionTrue(member, 'Ready'),
    state: member.metadata.deletionTimestamp === undefined ? (member.spec?.state ?? 'Active') : 'Draining',
    admits: matches(member.spec?.logicalClusterSelector, labels),
    load: inputs.loadOf(member.metadata.name),
  }))
}

function tenantRules(cluster: string, namespace: CachedObject | undefined, inputs: PlacementInputs): PlacementRule[] {
  return [...inputs.tenantPlacementsIn(cluster)]
    .filter((rule) => matches(rule.spec?.namespaceSelector, namespace?.metadata.labels))
    .map(ruleOf)
}

function adminRules(
  owner: DeepReadonly<LogicalCluster>,
  namespace: CachedObject | undefined,
  inputs: PlacementInputs,
): PlacementRule[] {
  return inputs.adminPlacements.store
    .list()
    .filter(
      ({ spec }) =>
        matches(spec?.logicalClusterSelector, owner.metadata.labels) &&
        matches(spec?.namespaceSelector, namespace?.metadata.labels),
    )
    .map(ruleOf)
}

function ruleOf({ metadata, spec }: DeepReadonly<Placement>): PlacementRule {
  return {
    name: metadata.name,
    priority: spec?.priority ?? 0,
    creationTimestamp: metadata.creationTimestamp ?? '',
    ...(spec?.clusters && { clusters: spec.clusters }),
  }
}
