// The next number of replicas of one workload, and what its autoscaler says of it, as kube-controller-manager does
// (horizontal.go). Pure.
import { quantityOf, quantityText } from '#apimachinery/quantity/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import {
  defaultMetrics,
  type Autoscaler,
  type AutoscalerCondition,
  type AutoscalerStatus,
  type MetricSpec,
  type MetricTarget,
} from './autoscaler.ts'
import { NoMetrics, replicasFor, type MeasuredPod, type Proposal } from './replica-count.ts'
import { limitReplicas, noHistory, type ScalingHistory } from './scaling-rules.ts'

export interface AutoscalerInput {
  readonly autoscaler: DeepReadonly<Autoscaler>
  /** Replicas in the spec of the workload, and in all members. */
  readonly workload: { readonly specReplicas: number; readonly statusReplicas: number }
  /** The pods in all members, with what they use of a resource, of all containers or of one. Throws NoMetrics. */
  readonly podsFor: (resource: string, container: string | undefined) => readonly MeasuredPod[]
  readonly history: ScalingHistory
  readonly nowMs: number
}

export interface AutoscalerPlan {
  /** The new number of replicas; undefined: the number stays. */
  readonly scaleTo?: number
  readonly status: AutoscalerStatus
  readonly history: ScalingHistory
  /** The Events with the reason why the workload is scaled, or why no number could be calculated. */
  readonly events: readonly AutoscalerEvent[]
}

export interface AutoscalerEvent {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
}

interface Found {
  readonly replicas: number
  readonly metric: string
  readonly current: object
}

/** Why one metric gave no number. */
interface Failure {
  readonly reason: string
  readonly message: string
  /** The message with the words that kube-controller-manager puts before it in the Event for all metrics. */
  readonly summary: string
}

/** The entry for a missing metric: clients find the metrics in the status by their position in the spec. */
const missingMetric = { type: '' } as const

type Conditions = Partial<Record<AutoscalerCondition['type'], Omit<AutoscalerCondition, 'type'>>>

/** The plan after the planned scale could not be written because of `error`. */
export function planRefused(
  plan: AutoscalerPlan,
  { autoscaler, history }: Pick<AutoscalerInput, 'autoscaler' | 'history'>,
  error: Error,
): AutoscalerPlan {
  const { lastScaleTime, desiredReplicas = 0, conditions: known } = autoscaler.status ?? {}
  const before = known?.find(({ type }) => type === 'AbleToScale')
  const able = {
    type: 'AbleToScale',
    status: 'False',
    reason: 'FailedUpdateScale',
    message: `the HPA controller was unable to update the target scale: ${error.message}`,
  } as const
  const conditions = plan.status.conditions?.map((one) => {
    if (one.type !== 'AbleToScale') return one
    const since = before?.status === able.status ? before.lastTransitionTime : plan.status.lastScaleTime
    return { ...able, ...(since !== undefined && { lastTransitionTime: since }) }
  })
  const { lastScaleTime: _, ...status } = plan.status
  return {
    status: {
      ...status,
      desiredReplicas,
      ...(lastScaleTime !== undefined && { lastScaleTime }),
      ...(conditions && { conditions }),
    },
    history: { ...plan.history, changes: history.changes },
    events: plan.events.map(({ message }) => ({
      type: 'Warning',
      reason: 'FailedRescale',
      message: `${message}; error: ${error.message}`,
    })),
  }
}

/** The plan for one autoscaler. */
export function planScale(input: AutoscalerInput): AutoscalerPlan {
  const { autoscaler, workload, history, nowMs } = input
  const { minReplicas = 1, maxReplicas = 1, metrics, behavior } = autoscaler.spec ?? {}
  const current = workload.specReplicas
  const able: Conditions = {
    AbleToScale: {
      status: 'True',
      reason: 'SucceededGetScale',
      message: "the HPA controller was able to get the target's current scale",
    },
  }
  if (current === 0 && minReplicas !== 0) {
    const message = 'scaling is disabled since the replica count of the target is zero'
    const conditions = { ...able, ScalingActive: { status: 'False', reason: 'ScalingDisabled', message } } as const
    return { status: statusOf(input, { desired: 0, conditions }), history: noHistory, events: [] }
  }
  if (current > maxReplicas || current < minReplicas) {
    const isAbove = current > maxReplicas
    const why = isAbove
      ? 'Current number of replicas above Spec.MaxReplicas'
      : 'Current number of replicas below Spec.MinReplicas'
    return rescale(input, { to: isAbove ? maxReplicas : minReplicas, why, conditions: able, history })
  }
  const specs = metrics !== undefined && metrics.length > 0 ? metrics : defaultMetrics
  const results = specs.map((spec) => tryMetric(spec, input))
  const found = results.filter((result): result is Found => 'replicas' in result)
  const [failure] = results.filter((result): result is Failure => !('replicas' in result))
  const best = found.toSorted((a, b) => b.replicas - a.replicas)[0]
  const measured = results.map((result) => ('replicas' in result ? result.current : missingMetric))
  // If a metric is missing, the workload does not shrink.
  if (best === undefined || (failure !== undefined && best.replicas < current)) {
    const none = { reason: 'FailedGetResourceMetric', message: 'there is no metric', summary: 'there is no metric' }
    const { reason, message, summary } = failure ?? none
    const text = `the HPA was unable to compute the replica count: ${message}`
    const conditions = { ...able, ScalingActive: { status: 'False', reason, message: text } } as const
    const failed = results.length - found.length
    const events = [
      { type: 'Warning', reason, message },
      {
        type: 'Warning',
        reason: 'FailedComputeMetricsReplicas',
        message: `invalid metrics (${failed} invalid out of ${results.length}), first error is: ${summary}`,
      },
    ] as const
    return { status: statusOf(input, { desired: current, conditions, metrics: measured }), history, events }
  }
  const next = limitReplicas({
    current,
    desired: best.replicas,
    min: minReplicas,
    max: maxReplicas,
    behavior,
    history,
    nowMs,
  })
  const conditions: Conditions = {
    AbleToScale: {
      status: 'True',
      ...(next.stabilized ?? { reason: 'ReadyForNewScale', message: 'recommended size matches current size' }),
    },
    ScalingActive: {
      status: 'True',
      reason: 'ValidMetricFound',
      message: `the HPA was able to successfully calculate a replica count from ${best.metric}`,
    },
    ScalingLimited: {
      status: next.limited.is ? 'True' : 'False',
      reason: next.limited.reason,
      message: next.limited.message,
    },
  }
  if (next.replicas === current)
    return {
      status: statusOf(input, { desired: current, conditions, metrics: measured }),
      history: next.history,
      events: [],
    }
  const why = next.replicas > current ? `${best.metric} above target` : 'All metrics below target'
  return rescale(input, { to: next.replicas, why, conditions, history: next.history, metrics: measured })
}

function rescale(
  input: AutoscalerInput,
  {
    to,
    why,
    conditions,
    history,
    metrics,
  }: {
    readonly to: number
    readonly why: string
    readonly conditions: Conditions
    readonly history: ScalingHistory
    readonly metrics?: readonly object[]
  },
): AutoscalerPlan {
  const { nowMs, workload } = input
  const able = {
    status: 'True',
    reason: 'SucceededRescale',
    message: `the HPA controller was able to update the target scale to ${to}`,
  } as const
  const status = statusOf(input, {
    desired: to,
    conditions: { ...conditions, AbleToScale: able },
    ...(metrics && { metrics }),
    lastScaleTime: timeOf(nowMs),
  })
  const changes = [...history.changes, { atMs: nowMs, by: to - workload.specReplicas }]
  const event = { type: 'Normal', reason: 'SuccessfulRescale', message: `New size: ${to}; reason: ${why}` } as const
  return { scaleTo: to, status, history: { ...history, changes }, events: [event] }
}

function tryMetric(spec: DeepReadonly<MetricSpec>, input: AutoscalerInput): Found | Failure {
  const source = sourceOf(spec)
  if (source === undefined) {
    const message = `a workload that is divided among member clusters is scaled by metrics of type Resource and ContainerResource alone, not ${spec.type}`
    return { reason: `FailedGet${spec.type}Metric`, message, summary: message }
  }
  const { name, target, container } = source
  const reason = container === undefined ? 'FailedGetResourceMetric' : 'FailedGetContainerResourceMetric'
  const failed = (message: string): Failure => {
    const what = container === undefined ? `${name} resource metric value` : `${container} container metric value`
    return { reason, message, summary: `failed to get ${what}: ${message}` }
  }
  try {
    const wanted = targetOf(target)
    if (wanted === undefined)
      return failed('invalid resource metric source: neither a utilization target nor a value target was set')
    const proposal = replicasFor(
      input.podsFor(name, container),
      input.workload.specReplicas,
      { resource: name, target: wanted },
      input.nowMs,
    )
    const current = currentOf(name, proposal)
    const metric = describe(name, container, target)
    return container === undefined
      ? { replicas: proposal.replicas, metric, current: { type: 'Resource', resource: { name, current } } }
      : {
          replicas: proposal.replicas,
          metric,
          current: { type: 'ContainerResource', containerResource: { name, container, current } },
        }
  } catch (error) {
    if (!(error instanceof NoMetrics)) throw error
    const what = target.averageUtilization === undefined ? 'usage' : 'utilization'
    return failed(`failed to get ${name} ${what}: ${error.message}`)
  }
}

interface Source {
  readonly name: string
  readonly target: DeepReadonly<MetricTarget>
  /** Absent: all containers. */
  readonly container?: string
}

function sourceOf({ type, resource, containerResource }: DeepReadonly<MetricSpec>): Source | undefined {
  if (type === 'Resource') return resource
  return type === 'ContainerResource' ? containerResource : undefined
}

function targetOf({
  averageUtilization,
  averageValue,
}: DeepReadonly<MetricTarget>): { utilization: number } | { averageNanos: bigint } | undefined {
  if (averageUtilization !== undefined) return { utilization: averageUtilization }
  if (averageValue === undefined) return undefined
  const { nanos } = quantityOf(averageValue)
  return nanos > 0n ? { averageNanos: nanos } : undefined
}

function describe(
  name: string,
  container: string | undefined,
  { averageUtilization }: DeepReadonly<MetricTarget>,
): string {
  if (averageUtilization === undefined) return `${name} resource`
  return `${name}${container === undefined ? '' : ' container'} resource utilization (percentage of request)`
}

const milli = 1_000_000n

function currentOf(resource: string, { utilization, averageNanos }: Proposal): object {
  const format = resource === 'memory' ? 'BinarySI' : 'DecimalSI'
  const averageValue = quantityText({ nanos: (averageNanos / milli) * milli, format })
  return { ...(utilization !== undefined && { averageUtilization: utilization }), averageValue }
}

const types = ['AbleToScale', 'ScalingActive', 'ScalingLimited'] as const

/** The status of the autoscaler. A condition keeps its time while its status stays; one that is not set now is kept. */
function statusOf(
  { autoscaler, workload, nowMs }: AutoscalerInput,
  {
    desired,
    conditions,
    metrics,
    lastScaleTime,
  }: {
    readonly desired: number
    readonly conditions: Conditions
    readonly metrics?: readonly object[]
    readonly lastScaleTime?: string
  },
): AutoscalerStatus {
  const { status, metadata } = autoscaler
  const told = types.flatMap((type) => {
    const before = status?.conditions?.find((one) => one.type === type)
    const now = conditions[type]
    if (now === undefined) return before === undefined ? [] : [before]
    const lastTransitionTime = before?.status === now.status ? before.lastTransitionTime : undefined
    return [{ type, ...now, lastTransitionTime: lastTransitionTime ?? timeOf(nowMs) }]
  })
  const scaled = lastScaleTime ?? status?.lastScaleTime
  return {
    ...(metadata.generation !== undefined && { observedGeneration: metadata.generation }),
    ...(scaled !== undefined && { lastScaleTime: scaled }),
    currentReplicas: workload.statusReplicas,
    desiredReplicas: desired,
    currentMetrics: metrics ?? null,
    conditions: told,
  }
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')
}
