// The status of a LogicalCluster. Pure.
import { clusterIdOf, type Condition } from '../../apimachinery/meta/index.ts'
import type { DeepReadonly } from '../../client/index.ts'
import { setCondition, type LogicalCluster, type LogicalClusterStatus } from '../../crds/index.ts'
import type { ClusterUrls } from '../framework/operator-context.ts'

export type ConditionUpdate = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>

export interface StatusInput {
  readonly urls: ClusterUrls
  /** The conditions to set; others stay as they are. */
  readonly conditions: readonly ConditionUpdate[]
  /** RFC 3339. */
  readonly now: string
}

/** The next status of the object; undefined if the present one is right. */
export function logicalClusterStatus(
  object: DeepReadonly<LogicalCluster>,
  { urls, conditions: updates, now }: StatusInput,
): LogicalClusterStatus | undefined {
  const observedGeneration = object.metadata.generation ?? 0
  let conditions: readonly DeepReadonly<Condition>[] = object.status?.conditions ?? []
  for (const update of updates) conditions = setCondition(conditions, { ...update, observedGeneration }, now)
  const { directURL: _, ...before } = (object.status ?? {}) as LogicalClusterStatus
  const status: LogicalClusterStatus = {
    ...before,
    id: clusterIdOf(object.metadata.uid ?? ''),
    url: urls.url,
    ...(urls.directURL !== undefined && { directURL: urls.directURL }),
    observedGeneration,
    conditions: [...conditions],
  }
  const isSame =
    object.status !== undefined &&
    object.status.id === status.id &&
    object.status.url === status.url &&
    object.status.directURL === status.directURL &&
    object.status.observedGeneration === observedGeneration &&
    conditions === object.status.conditions
  return isSame ? undefined : status
}
