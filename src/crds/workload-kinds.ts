// The workload kinds that are placed on members, one row each: where their fields are, when a copy is healthy and how
// it moves. Scheduler and syncer read only this table, so another kind with pods of its own is another row.
import { cloneJson, isJsonObject, type GroupVersionResource, type KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusRule } from './status-rule.ts'
import { isOwnAnnotation, memberAnnotation, placedOnAnnotation, templateAnnotation } from './sync-contract.ts'

type Path = readonly string[]

/** The resources of the rows. */
export type WorkloadResource =
  | 'deployments'
  | 'statefulsets'
  | 'daemonsets'
  | 'replicasets'
  | 'replicationcontrollers'
  | 'jobs'
  | 'cronjobs'
  | 'pods'

export interface WorkloadKind {
  readonly gvr: GroupVersionResource & { readonly resource: WorkloadResource }
  readonly apiVersion: string
  readonly kind: string
  readonly paths: {
    /** A number, 1 if absent. A kind without it counts as one. */
    readonly replicas?: Path
    /** A LabelSelector. */
    readonly selector?: Path
    /** Empty if the object is a pod itself. */
    readonly template: Path
  }
  /** Which fields of the status come from members. Absent: the syncer copies the whole status, as for every pod. */
  readonly status?: StatusRule
  /**
   * A copy is complete if each field of `reaching` is at least the wanted replicas and all fields of `equal` are equal.
   */
  readonly health: {
    readonly reaching: readonly string[]
    readonly equal: readonly string[]
  }
  /** Objects between the workload and its pods, one per template; absent if pods belong to the workload itself. */
  readonly history?: {
    readonly gvr: GroupVersionResource & { readonly resource: 'replicasets' }
    readonly kind: string
    /** A number, 10 if absent: how many old ones are kept. */
    readonly limit: Path
    /** Label with the hash of the template, on these objects and their pods. */
    readonly templateHashLabel: string
    /** Annotation with the revision number, on these objects and on the workload. */
    readonly revisionAnnotation: string
  }
  /** Annotations with this prefix belong to the kind's controller and are not copied between members. */
  readonly controllerAnnotationPrefix?: string
  /**
   * Kinds whose controllers make objects of this kind. These controllers run in members only, so an object that a
   * tenant made with such an owner is left alone.
   */
  readonly madeBy: readonly string[]
  /**
   * How a copy goes to another member: the new one serves before the old one goes, the old one is gone before the new
   * one is created, or it ends where it began.
   */
  readonly move: 'makeBeforeBreak' | 'breakBeforeMake' | 'stays'
  /** The template of a copy that exists cannot be changed. */
  readonly fixedTemplate: boolean
}

const pathsOfApps: WorkloadKind['paths'] = {
  replicas: ['spec', 'replicas'],
  selector: ['spec', 'selector'],
  template: ['spec', 'template'],
}

export const workloadKinds: readonly WorkloadKind[] = [
  {
    gvr: { group: 'apps', version: 'v1', resource: 'deployments' },
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    paths: pathsOfApps,
    status: {
      summed: ['replicas', 'updatedReplicas', 'readyReplicas', 'availableReplicas', 'unavailableReplicas'],
      taken: [],
      observes: true,
      conditions: 'withUpdateTime',
    },
    health: { reaching: ['updatedReplicas', 'availableReplicas'], equal: ['replicas', 'updatedReplicas'] },
    history: {
      gvr: { group: 'apps', version: 'v1', resource: 'replicasets' },
      kind: 'ReplicaSet',
      limit: ['spec', 'revisionHistoryLimit'],
      templateHashLabel: 'pod-template-hash',
      revisionAnnotation: 'deployment.kubernetes.io/revision',
    },
    controllerAnnotationPrefix: 'deployment.kubernetes.io/',
    madeBy: [],
    move: 'makeBeforeBreak',
    fixedTemplate: false,
  },
  {
    gvr: { group: 'apps', version: 'v1', resource: 'statefulsets' },
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    paths: pathsOfApps,
    status: {
      summed: ['replicas', 'readyReplicas', 'currentReplicas', 'updatedReplicas', 'availableReplicas'],
      taken: ['currentRevision', 'updateRevision', 'collisionCount'],
      observes: true,
      conditions: 'plain',
    },
    // Not updatedReplicas: a partition keeps old pods.
    health: { reaching: ['availableReplicas'], equal: ['replicas', 'availableReplicas'] },
    madeBy: [],
    move: 'breakBeforeMake',
    fixedTemplate: false,
  },
  {
    gvr: { group: 'apps', version: 'v1', resource: 'daemonsets' },
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    paths: { selector: ['spec', 'selector'], template: ['spec', 'template'] },
    status: {
      summed: [
        'currentNumberScheduled',
        'numberMisscheduled',
        'desiredNumberScheduled',
        'numberReady',
        'updatedNumberScheduled',
        'numberAvailable',
        'numberUnavailable',
      ],
      taken: ['collisionCount'],
      observes: true,
      conditions: 'plain',
    },
    health: { reaching: [], equal: ['desiredNumberScheduled', 'updatedNumberScheduled', 'numberAvailable'] },
    controllerAnnotationPrefix: 'deprecated.daemonset.template.generation',
    madeBy: [],
    move: 'makeBeforeBreak',
    fixedTemplate: false,
  },
  {
    gvr: { group: 'apps', version: 'v1', resource: 'replicasets' },
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    paths: pathsOfApps,
    status: {
      summed: ['replicas', 'fullyLabeledReplicas', 'readyReplicas', 'availableReplicas', 'terminatingReplicas'],
      taken: [],
      observes: true,
      conditions: 'plain',
    },
    health: { reaching: ['availableReplicas'], equal: ['replicas', 'availableReplicas'] },
    controllerAnnotationPrefix: 'deployment.kubernetes.io/',
    madeBy: ['Deployment'],
    move: 'makeBeforeBreak',
    fixedTemplate: false,
  },
  {
    gvr: { group: '', version: 'v1', resource: 'replicationcontrollers' },
    apiVersion: 'v1',
    kind: 'ReplicationController',
    // Its selector is a map of labels.
    paths: { replicas: ['spec', 'replicas'], template: ['spec', 'template'] },
    status: {
      summed: ['replicas', 'fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'],
      taken: [],
      observes: true,
      conditions: 'plain',
    },
    health: { reaching: ['availableReplicas'], equal: ['replicas', 'availableReplicas'] },
    madeBy: [],
    move: 'makeBeforeBreak',
    fixedTemplate: false,
  },
  {
    gvr: { group: 'batch', version: 'v1', resource: 'jobs' },
    apiVersion: 'batch/v1',
    kind: 'Job',
    paths: { selector: ['spec', 'selector'], template: ['spec', 'template'] },
    status: {
      summed: [],
      taken: [
        'startTime',
        'completionTime',
        'active',
        'succeeded',
        'failed',
        'ready',
        'terminating',
        'completedIndexes',
        'failedIndexes',
        'uncountedTerminatedPods',
      ],
      observes: false,
      conditions: 'plain',
    },
    health: { reaching: [], equal: [] },
    // Not CronJob: `kubectl create job --from` names it as the owner of a Job that has to run.
    madeBy: [],
    move: 'stays',
    fixedTemplate: true,
  },
  {
    gvr: { group: 'batch', version: 'v1', resource: 'cronjobs' },
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    paths: { template: ['spec', 'jobTemplate', 'spec', 'template'] },
    status: { summed: [], taken: ['active', 'lastScheduleTime', 'lastSuccessfulTime'], observes: false },
    health: { reaching: [], equal: [] },
    madeBy: [],
    move: 'breakBeforeMake',
    fixedTemplate: false,
  },
  {
    gvr: { group: '', version: 'v1', resource: 'pods' },
    apiVersion: 'v1',
    kind: 'Pod',
    paths: { template: [] },
    health: { reaching: [], equal: [] },
    madeBy: ['ReplicaSet', 'ReplicationController', 'StatefulSet', 'DaemonSet', 'Job'],
    move: 'stays',
    fixedTemplate: true,
  },
]

const byResource = new Map<string, WorkloadKind>(workloadKinds.map((row) => [row.gvr.resource, row]))
const byKind = new Map<string, WorkloadKind>(workloadKinds.map((row) => [row.kind, row]))

/** The row of a resource such as `deployments`; undefined if it is not a workload. */
export function workloadKindOf(resource: string): WorkloadKind | undefined {
  return byResource.get(resource)
}

/** True for the resource of a row. */
export function isWorkloadResource(resource: string): resource is WorkloadResource {
  return byResource.has(resource)
}

/** The row of an object, by its kind; undefined if it is not a workload. */
export function workloadKindOfObject({ kind }: { readonly kind: string }): WorkloadKind | undefined {
  return byKind.get(kind)
}

/** A row's functions take cached objects as well. */
interface AnyObject {
  readonly kind: string
}

/** The wanted replicas of a workload. */
export function replicasOf(workload: AnyObject): number {
  const value = valueAt(workload, workloadKindOfObject(workload)?.paths.replicas)
  return typeof value === 'number' ? value : 1
}

/** Whether its owner has paused the rollout. */
export function isPaused(workload: AnyObject): boolean {
  return valueAt(workload, ['spec', 'paused']) === true
}

/** The pod template of a workload, or a pod in that form; undefined if it has none. */
export function templateOf(workload: AnyObject): unknown {
  const path = workloadKindOfObject(workload)?.paths.template
  return path?.length === 0 ? podAsTemplate(workload as unknown as KubeObject) : valueAt(workload, path)
}

/** A pod as its tenant wrote it: without its node, kcp's annotations, and the ephemeral containers. */
function podAsTemplate({ metadata, spec }: KubeObject): unknown {
  if (!isJsonObject(spec)) return undefined
  const { labels, annotations } = metadata
  const kept = Object.entries(annotations ?? {}).filter(([name]) => !isOwnAnnotation(name))
  const { nodeName: _node, ephemeralContainers: _added, ...written } = spec
  return {
    metadata: { ...(labels && { labels }), ...(kept.length > 0 && { annotations: Object.fromEntries(kept) }) },
    spec: written,
  }
}

/** A copy of the workload with another pod template. */
export function withTemplate(workload: KubeObject, template: unknown): KubeObject {
  const copy: KubeObject = cloneJson(workload)
  const path = workloadKindOfObject(workload)?.paths.template ?? []
  const last = path.at(-1)
  if (last === undefined) return withPod(copy, template as Pick<KubeObject, 'metadata' | 'spec'>)
  let parent: Record<string, unknown> = copy
  for (const field of path.slice(0, -1)) {
    const next = parent[field]
    if (!isJsonObject(next)) return copy
    parent = next
  }
  parent[last] = template
  return copy
}

function withPod(pod: KubeObject, { metadata, spec }: Pick<KubeObject, 'metadata' | 'spec'>): KubeObject {
  const { labels, annotations } = metadata
  const merged = { ...pod.metadata, labels: { ...pod.metadata.labels, ...labels } }
  return { ...pod, metadata: { ...merged, annotations: { ...pod.metadata.annotations, ...annotations } }, spec }
}

/** Whether a rollout with this status has finished. */
export function isComplete(
  { health }: WorkloadKind,
  status: Readonly<Record<string, unknown>>,
  replicas: number,
): boolean {
  const count = (field: string): number => (typeof status[field] === 'number' ? status[field] : 0)
  const first = health.equal[0]
  return (
    health.reaching.every((field) => count(field) >= replicas) &&
    (first === undefined || health.equal.every((field) => count(field) === count(first)))
  )
}

/** True for a Job or a pod that has ended: it is never started again, anywhere. */
export function hasEnded(workload: AnyObject): boolean {
  const { move } = workloadKindOfObject(workload) ?? {}
  const status = (workload as unknown as KubeObject)['status']
  if (move !== 'stays' || !isJsonObject(status)) return false
  const { phase, conditions } = status
  if (phase === 'Succeeded' || phase === 'Failed') return true
  return (Array.isArray(conditions) ? conditions : []).some(
    (one) => isJsonObject(one) && (one['type'] === 'Complete' || one['type'] === 'Failed') && one['status'] === 'True',
  )
}

/**
 * True for a workload that runs on while its logical cluster is asleep, because it would lose what it has done: a pod of
 * its own, and a Job that has begun.
 */
export function runsOnAsleep(workload: AnyObject): boolean {
  const status = (workload as unknown as KubeObject)['status']
  return (
    workload.kind === 'Pod' || (workload.kind === 'Job' && isJsonObject(status) && status['startTime'] !== undefined)
  )
}

/**
 * True for a workload that its tenant made, and that we place. False for copies of what members make (pods, ReplicaSets
 * of a Deployment, Jobs of a CronJob), for what a controller in the logical cluster made for a workload that we place,
 * and for a pod that somebody else has bound to a node.
 */
export function isPlaceable(workload: AnyObject): boolean {
  const { metadata, ...rest } = workload as unknown as KubeObject
  const kind = workloadKindOfObject(workload)
  const { annotations = {}, ownerReferences = [] } = metadata
  if (kind === undefined || annotations[templateAnnotation] !== undefined) return false
  if (annotations[placedOnAnnotation] !== undefined) return true
  if (annotations[memberAnnotation] !== undefined) return false
  const owner = ownerReferences.find(({ controller }) => controller === true)
  if (
    owner !== undefined &&
    kind.madeBy.includes(owner.kind) &&
    byKind.get(owner.kind)?.apiVersion === owner.apiVersion
  )
    return false
  const { nodeName } = (rest['spec'] ?? {}) as { nodeName?: string }
  return kind.kind !== 'Pod' || nodeName === undefined || nodeName === ''
}

/** The value at a path; undefined if a part of the path is absent. */
export function valueAt(object: unknown, path: Path = []): unknown {
  if (path.length === 0) return undefined
  return path.reduce<unknown>((value, field) => (isJsonObject(value) ? value[field] : undefined), object)
}
