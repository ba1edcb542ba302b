// The kinds that are copied into members. To sync another kind, add a row: when a member gets a copy, and what the copy
// looks like. Workloads come from the table in crds/workload-kinds.ts.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import {
  isPlaceable,
  memberAnnotation,
  volumeAnnotation,
  workloadKinds,
  type StatusRule,
  type WorkloadKind,
} from '#crds/index.ts'
import type { NamespaceView } from '#syncer/context/namespace-view.ts'
import { scaleTargetOf } from '#syncer/context/references.ts'
import type { CachedObject, ResourceName } from '#syncer/context/resources.ts'
import { claimDown, networkPolicyDown, specDown } from '#syncer/transform/dependents-down.ts'
import {
  contentDown,
  serviceAccountDown,
  serviceDown,
  withoutRefusedPorts,
  type OwnerCluster,
} from '#syncer/transform/down.ts'
import type { PodContext } from '#syncer/transform/pod-template.ts'
import { workloadDown, type CopyNow } from '#syncer/transform/workload-down.ts'
import { withBudgetShare, withRolloutShare } from './divided-budget.ts'
import { withoutScaling } from './scaled.ts'

export interface SyncedKind {
  readonly resource: ResourceName
  /**
   * What brings an object into a member: the scheduler's decision, a workload there that refers to it, or any workload
   * of its namespace there.
   */
  readonly follows: 'decision' | 'references' | 'namespace'
  /** Whether this member should have a copy. Not called for objects that are being deleted. */
  readonly wanted: (object: CachedObject, view: NamespaceView, member: string) => boolean
  readonly down: (object: CachedObject, owner: OwnerCluster, context: PodContext, now: CopyNow) => KubeObject
  /** The copy without the values that the member refuses in these fields; undefined if it needs them. */
  readonly withoutRefused?: (copy: KubeObject, refusedFields: readonly string[]) => KubeObject | undefined
  /** Objects of this kind are copied before the first pod of their namespace. */
  readonly precedesPods?: true
  /**
   * A workload: a finalizer delays its deletion upstream until nothing of it is left in the member, and its copy is
   * deleted in the foreground. Objects that its pod template refers to are applied before it and deleted after it.
   */
  readonly workload?: WorkloadKind
  /** The deletion upstream waits, by a finalizer, until the copy is gone. */
  readonly finalizes: boolean
  /** Annotation that is written upstream before the first copy: the member in which the object stays. */
  readonly pinnedBy?: string
  /** The status that members report. */
  readonly status?: StatusRule
  /** The copy for a member that runs workloads of the namespace together with others, or has workloads asleep. */
  readonly divided?: (copy: KubeObject, view: NamespaceView, member: string) => KubeObject
  /** Fields of the upstream status with which a new copy begins, because its controller goes on from there. */
  readonly beginsWith?: readonly string[]
}

/** Every member creates these itself: its controllers would overwrite a copy of ours. */
const createdByMembers = new Set(['configmaps/kube-root-ca.crt'])

export const syncedKinds: readonly SyncedKind[] = [
  ...workloadKinds.map((workload): SyncedKind => ({
    resource: workload.gvr.resource,
    follows: 'decision',
    workload,
    finalizes: true,
    wanted: (object, view) => isPlaceable(object) && view.placedHere(object),
    down: workloadDown,
    divided: withRolloutShare,
    ...(workload.status && { status: workload.status }),
    // With lastScheduleTime, the member makes up for a run that was due while the CronJob moved.
    ...(workload.kind === 'CronJob' && { beginsWith: ['lastScheduleTime'] }),
  })),
  {
    resource: 'services',
    follows: 'namespace',
    finalizes: false,
    // Every cluster has its own Service `kubernetes`. In pods this name leads to the API of the logical cluster.
    wanted: ({ metadata }, view) =>
      view.servicesWanted && !(metadata.name === 'kubernetes' && metadata.namespace === 'default'),
    down: (object, owner, _context, now) => serviceDown(object, owner, now),
    withoutRefused: withoutRefusedPorts,
  },
  {
    resource: 'configmaps',
    follows: 'references',
    finalizes: false,
    wanted: referenced('configmaps'),
    down: contentDown,
  },
  { resource: 'secrets', follows: 'references', finalizes: false, wanted: referenced('secrets'), down: contentDown },
  {
    resource: 'serviceaccounts',
    follows: 'references',
    finalizes: false,
    wanted: referenced('serviceaccounts'),
    down: serviceAccountDown,
  },
  {
    // A volume stays where it was created, also while no pod uses it.
    resource: 'persistentvolumeclaims',
    follows: 'references',
    finalizes: false,
    pinnedBy: volumeAnnotation,
    wanted: ({ metadata: { name = '', annotations = {} } }, view, member) =>
      annotations[memberAnnotation] === undefined &&
      (annotations[volumeAnnotation] === member ||
        (annotations[volumeAnnotation] === undefined && view.refersTo(`persistentvolumeclaims/${name}`))),
    down: claimDown,
    status: {
      summed: [],
      taken: ['phase', 'accessModes', 'capacity', 'allocatedResources', 'allocatedResourceStatuses'],
      observes: false,
      conditions: 'plain',
    },
  },
  {
    resource: 'ingresses',
    follows: 'namespace',
    finalizes: false,
    wanted: inNamespace,
    down: specDown,
    status: { summed: [], taken: [], joinsAddresses: true, observes: false },
  },
  {
    // The member's API server applies the defaults and bounds to the pods that its controllers create.
    resource: 'limitranges',
    follows: 'namespace',
    finalizes: false,
    precedesPods: true,
    wanted: inNamespace,
    down: specDown,
  },
  { resource: 'networkpolicies', follows: 'namespace', finalizes: false, wanted: inNamespace, down: networkPolicyDown },
  {
    resource: 'horizontalpodautoscalers',
    follows: 'namespace',
    finalizes: false,
    wanted: (object, view) => view.runsWhole(scaleTargetOf(object)),
    down: specDown,
    divided: withoutScaling,
    status: {
      summed: [],
      taken: ['currentReplicas', 'desiredReplicas', 'currentMetrics', 'lastScaleTime'],
      observes: false,
      conditions: 'plain',
      awaitsConditions: true,
    },
  },
  {
    resource: 'poddisruptionbudgets',
    follows: 'namespace',
    finalizes: false,
    wanted: inNamespace,
    down: specDown,
    divided: withBudgetShare,
    status: {
      summed: ['currentHealthy', 'desiredHealthy', 'disruptionsAllowed', 'expectedPods'],
      taken: [],
      observes: true,
      conditions: 'plain',
    },
  },
]

const byResource = new Map(syncedKinds.map((kind) => [kind.resource, kind]))

/** The row of a resource; undefined if it is not copied into members. */
export function syncedKindOf(resource: string): SyncedKind | undefined {
  return byResource.get(resource as ResourceName)
}

function inNamespace(_object: unknown, view: NamespaceView): boolean {
  return view.present
}

function referenced(resource: ResourceName): SyncedKind['wanted'] {
  return ({ metadata: { name = '', annotations = {} } }, view, member) =>
    view.refersTo(`${resource}/${name}`) &&
    !createdByMembers.has(`${resource}/${name}`) &&
    // What this member made for a custom resource is there already.
    annotations[memberAnnotation] !== member
}
