// The workload kinds that are placed on members, one row each: where their fields are and when a copy is healthy. Scheduler
// and syncer read only this table, so another kind with pods of its own is another row (and rights in join/member-objects).
import { cloneJson, isJsonObject, type GroupVersionResource, type KubeObject } from '../apimachinery/meta/index.ts'

type Path = readonly string[]

/** Numbers in the status that are summed over members. */
export type CountField = 'replicas' | 'updatedReplicas' | 'readyReplicas' | 'availableReplicas' | 'unavailableReplicas'

/** The resources of the rows. */
export type WorkloadResource = 'deployments'

export interface WorkloadKind {
  readonly gvr: GroupVersionResource & { readonly resource: WorkloadResource }
  readonly apiVersion: string
  readonly kind: string
  readonly paths: {
    /** A number, 1 if absent. */
    readonly replicas: Path
    /** A LabelSelector. */
    readonly selector: Path
    readonly template: Path
  }
  /** A copy is complete if each field of `reaching` is at least the wanted replicas and all fields of `equal` are equal. */
  readonly health: {
    readonly counts: readonly CountField[]
    readonly reaching: readonly CountField[]
    readonly equal: readonly CountField[]
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
  readonly controllerAnnotationPrefix: string
  /** The pods end by themselves, so a copy must not be started a second time elsewhere. */
  readonly runsOnce: boolean
}

export const workloadKinds: readonly WorkloadKind[] = [
  {
    gvr: { group: 'apps', version: 'v1', resource: 'deployments' },
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    paths: { replicas: ['spec', 'replicas'], selector: ['spec', 'selector'], template: ['spec', 'template'] },
    health: {
      counts: ['replicas', 'updatedReplicas', 'readyReplicas', 'availableReplicas', 'unavailableReplicas'],
      reaching: ['updatedReplicas', 'availableReplicas'],
      equal: ['replicas', 'updatedReplicas'],
    },
    history: {
      gvr: { group: 'apps', version: 'v1', resource: 'replicasets' },
      kind: 'ReplicaSet',
      limit: ['spec', 'revisionHistoryLimit'],
      templateHashLabel: 'pod-template-hash',
      revisionAnnotation: 'deployment.kubernetes.io/revision',
    },
    controllerAnnotationPrefix: 'deployment.kubernetes.io/',
    runsOnce: false,
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

/** The pod template of a workload; undefined if it has none. */
export function templateOf(workload: AnyObject): unknown {
  return valueAt(workload, workloadKindOfObject(workload)?.paths.template)
}

/** A copy of the workload with another pod template. */
export function withTemplate(workload: KubeObject, template: unknown): KubeObject {
  const copy: KubeObject = cloneJson(workload)
  const path = workloadKindOfObject(workload)?.paths.template ?? []
  let parent: Record<string, unknown> = copy
  for (const field of path.slice(0, -1)) {
    const next = parent[field]
    if (!isJsonObject(next)) return copy
    parent = next
  }
  const last = path.at(-1)
  if (last !== undefined) parent[last] = template
  return copy
}

/** Whether a rollout with this status has finished. */
export function isComplete(
  { health }: WorkloadKind,
  status: Readonly<Partial<Record<CountField, number>>>,
  replicas: number,
): boolean {
  const count = (field: CountField): number => status[field] ?? 0
  const first = health.equal[0]
  return (
    health.reaching.every((field) => count(field) >= replicas) &&
    (first === undefined || health.equal.every((field) => count(field) === count(first)))
  )
}

/** The value at a path; undefined if a part of the path is absent. */
export function valueAt(object: unknown, path: Path = []): unknown {
  if (path.length === 0) return undefined
  return path.reduce<unknown>((value, field) => (isJsonObject(value) ? value[field] : undefined), object)
}
