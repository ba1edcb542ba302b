// Keys of the placement queue: `RESOURCE CLUSTER|NAMESPACE/NAME`.
import { clusterInKey, parseKey } from '#client/index.ts'
import { workloadKindOf, type WorkloadKind } from '#crds/index.ts'

export interface WorkloadRef {
  readonly kind: WorkloadKind
  /** The informer's key. */
  readonly objectKey: string
  readonly cluster: string
  readonly namespace: string
  readonly name: string
}

export function workloadKey({ gvr }: WorkloadKind, objectKey: string): string {
  return `${gvr.resource} ${objectKey}`
}

/** The parts of a key made by workloadKey; undefined for a resource that is not a workload. */
export function parseWorkloadKey(key: string): WorkloadRef | undefined {
  const space = key.indexOf(' ')
  const kind = workloadKindOf(key.slice(0, space))
  const objectKey = key.slice(space + 1)
  const { cluster = '', namespace = '', name } = parseKey(objectKey)
  return kind === undefined ? undefined : { kind, objectKey, cluster, namespace, name }
}

/** The logical cluster of a key, by which the queue is fair. */
export function clusterOfWorkloadKey(key: string): string {
  return clusterInKey(key.slice(key.indexOf(' ') + 1))
}
