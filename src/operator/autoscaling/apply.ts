// Writes what was planned: the scale of the workload, the status of its autoscaler, and an Event.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isDeepStrictEqual } from 'node:util'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import type { DeepReadonly, KubeClient } from '#client/index.ts'
import { newEvent, workloadKindOfObject } from '#crds/index.ts'
import type { Logger } from '#telemetry/index.ts'
import type { Autoscaler } from './autoscaler.ts'
import type { AutoscalerEvent, AutoscalerPlan } from './plan.ts'

const events = { group: '', version: 'v1', resource: 'events' } as const
const autoscalers = { group: 'autoscaling', version: 'v2', resource: 'horizontalpodautoscalers' } as const

export interface PlanTarget {
  readonly autoscaler: DeepReadonly<Autoscaler>
  readonly workload: DeepReadonly<KubeObject>
  readonly client: KubeClient
  readonly namespace: string
  /** The name of the autoscaler. */
  readonly name: string
  /** In Unix milliseconds. */
  readonly now: number
  readonly log: Logger
}

/** Writes the scale of the workload, unless `scaleTo` is undefined. Resolves with the error of a failed write. */
export async function applyScale(
  scaleTo: number | undefined,
  { workload, client, namespace }: Pick<PlanTarget, 'workload' | 'client' | 'namespace'>,
  signal: AbortSignal,
): Promise<Error | undefined> {
  const kind = workloadKindOfObject(workload)
  if (scaleTo === undefined || kind === undefined) return undefined
  const ref = { namespace, name: workload.metadata.name ?? '' }
  const patch = { spec: { replicas: scaleTo } }
  try {
    await client.patch(kind.gvr, ref, 'merge', patch, { subresource: 'scale', signal })
    return undefined
  } catch (error) {
    if (signal.aborted || !(error instanceof Error)) throw error
    return error
  }
}

/** Writes the Events and the status. Rejects with the server's error, unless it is NotFound or Conflict. */
export async function applyStatus(plan: AutoscalerPlan, target: PlanTarget, signal: AbortSignal): Promise<void> {
  const { autoscaler, client, namespace, name } = target
  // The Events come first, because they tell people the reason even if the server refuses the status.
  for (const event of plan.events) await tell(event, target, signal)
  if (isDeepStrictEqual(autoscaler.status, plan.status)) return
  const { uid } = autoscaler.metadata
  const patch = { metadata: { ...(uid && { uid }) }, status: plan.status }
  await client
    .patch(autoscalers, { namespace, name }, 'merge', patch, { subresource: 'status', signal })
    .catch(tolerate('NotFound', 'Conflict'))
}

/** An Event is a help only: a refusal is logged. */
async function tell(
  { type, reason, message }: AutoscalerEvent,
  { autoscaler: { metadata }, client, namespace, name, now, log }: PlanTarget,
  signal: AbortSignal,
): Promise<void> {
  const time = new Date(now).toISOString().replace(/\.\d+Z$/, 'Z')
  const { uid = '', resourceVersion = '' } = metadata
  const kind = { apiVersion: 'autoscaling/v2', kind: 'HorizontalPodAutoscaler' }
  const event = newEvent({
    metadata: { namespace, generateName: `${name}.` },
    about: { ...kind, namespace, name, uid, resourceVersion },
    component: 'horizontal-pod-autoscaler',
    ...{ type, reason, message, now: time },
  })
  try {
    await client.create(events, event, { signal })
  } catch (error) {
    if (!isStatusError(error)) throw error
    log.debug('could not write an event', { namespace, name, error })
  }
}
