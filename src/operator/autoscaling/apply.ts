// Writes what was planned: the scale of the workload, the status of its autoscaler, and an Event.
import type { KubeObject } from '../../apimachinery/meta/index.ts'
import { isDeepStrictEqual } from 'node:util'
import { isStatusError, tolerate } from '../../apimachinery/status/index.ts'
import type { DeepReadonly, KubeClient } from '../../client/index.ts'
import { workloadKindOfObject } from '../../crds/index.ts'
import type { Logger } from '../../telemetry/index.ts'
import type { Autoscaler } from './autoscaler.ts'
import type { AutoscalerPlan } from './plan.ts'

const events = { group: '', version: 'v1', resource: 'events' } as const
const autoscalers = { group: 'autoscaling', version: 'v2', resource: 'horizontalpodautoscalers' } as const

export interface PlanTarget {
  readonly autoscaler: DeepReadonly<Autoscaler>
  readonly workload: DeepReadonly<KubeObject>
  readonly client: KubeClient
  readonly namespace: string
  /** Of the autoscaler. */
  readonly name: string
  /** In Unix milliseconds. */
  readonly now: number
  readonly log: Logger
}

/** The scale first: a status that tells of it is true then. Rejects with what the server refuses, but for a conflict. */
export async function applyPlan(plan: AutoscalerPlan, target: PlanTarget, signal: AbortSignal): Promise<void> {
  const { autoscaler, workload, client, namespace, name } = target
  const kind = workloadKindOfObject(workload)
  if (plan.scaleTo !== undefined && kind !== undefined) {
    const ref = { namespace, name: workload.metadata.name ?? '' }
    const patch = { spec: { replicas: plan.scaleTo } }
    await client.patch(kind.gvr, ref, 'merge', patch, { subresource: 'scale', signal })
  }
  if (!isDeepStrictEqual(autoscaler.status, plan.status)) {
    const { uid } = autoscaler.metadata
    const patch = { metadata: { ...(uid && { uid }) }, status: plan.status }
    await client
      .patch(autoscalers, { namespace, name }, 'merge', patch, { subresource: 'status', signal })
      .catch(tolerate('NotFound', 'Conflict'))
  }
  if (plan.event) await tell(plan.event, target, signal)
}

/** An Event is a help only: a refusal is logged. */
async function tell(
  { type, reason, message }: NonNullable<AutoscalerPlan['event']>,
  { autoscaler: { metadata }, client, namespace, name, now, log }: PlanTarget,
  signal: AbortSignal,
): Promise<void> {
  const time = new Date(now).toISOString().replace(/\.\d+Z$/, 'Z')
  const { uid = '', resourceVersion = '' } = metadata
  const involvedObject = {
    apiVersion: 'autoscaling/v2',
    kind: 'HorizontalPodAutoscaler',
    namespace,
    name,
    uid,
    resourceVersion,
  }
  const event = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { namespace, generateName: `${name}.` },
    involvedObject,
    type,
    reason,
    message: message.slice(0, 1024),
    source: { component: 'horizontal-pod-autoscaler' },
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
  }
  try {
    await client.create(events, event, { signal })
  } catch (error) {
    if (!isStatusError(error)) throw error
    log.debug('could not write an event', { namespace, name, error })
  }
}
