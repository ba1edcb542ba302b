// The status of a LogicalCluster. Pure.
import { isDeepStrictEqual } from 'node:util'
import { clusterIdOf, type Condition } from '#apimachinery/meta/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import { setCondition, type LogicalCluster, type LogicalClusterStatus } from '#crds/index.ts'
import type { ClusterUrls } from '#operator/framework/operator-context.ts'

export type ConditionUpdate = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>

export interface StatusInput {
  readonly urls: ClusterUrls
  /** The conditions to set; others stay as they are. */
  readonly conditions: readonly ConditionUpdate[]
  /** The new status.kubeconfigs; absent: the present one stays. */
  readonly kubeconfigs?: readonly KubeconfigSecret[]
  /** Types of conditions that do not apply any more. */
  readonly dropConditions?: readonly string[]
  /** RFC 3339. */
  readonly now: string
}

type KubeconfigSecret = NonNullable<LogicalClusterStatus['kubeconfigs']>[number]

/** The next status of the object; undefined if the present one is right. */
export function logicalClusterStatus(
  object: DeepReadonly<LogicalCluster>,
  { urls, conditions: updates, kubeconfigs, dropConditions = [], now }: StatusInput,
): LogicalClusterStatus | undefined {
  const observedGeneration = object.metadata.generation ?? 0
  let conditions: readonly DeepReadonly<Condition>[] = object.status?.conditions ?? []
  for (const update of updates) conditions = setCondition(conditions, { ...update, observedGeneration }, now)
  if (conditions.some(({ type }) => dropConditions.includes(type)))
    conditions = conditions.filter(({ type }) => !dropConditions.includes(type))
  const { directURL: _, kubeconfigs: secretsBefore = [], ...before } = (object.status ?? {}) as LogicalClusterStatus
  const secrets = kubeconfigs ?? secretsBefore
  const status: LogicalClusterStatus = {
    ...before,
    id: clusterIdOf(object.metadata.uid ?? ''),
    url: urls.url,
    ...(urls.directURL !== undefined && { directURL: urls.directURL }),
    ...(secrets.length > 0 && { kubeconfigs: secrets.map(({ namespace, name }) => ({ namespace, name })) }),
    observedGeneration,
    conditions: [...conditions],
  }
  const isSame =
    object.status !== undefined &&
    object.status.id === status.id &&
    object.status.url === status.url &&
    object.status.directURL === status.directURL &&
    isDeepStrictEqual(secrets, secretsBefore) &&
    object.status.observedGeneration === observedGeneration &&
    conditions === object.status.conditions
  return isSame ? undefined : status
}
