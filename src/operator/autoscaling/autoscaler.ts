// The parts of a HorizontalPodAutoscaler (autoscaling/v2) that are read and written here.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { Behavior } from './scaling-rules.ts'

export interface MetricTarget {
  readonly type: 'Utilization' | 'AverageValue' | 'Value'
  readonly averageUtilization?: number
  readonly averageValue?: string
}

export interface MetricSpec {
  readonly type: string
  readonly resource?: { readonly name: string; readonly target: MetricTarget }
  readonly containerResource?: { readonly name: string; readonly container: string; readonly target: MetricTarget }
}

export interface AutoscalerSpec {
  readonly scaleTargetRef: { readonly apiVersion?: string; readonly kind: string; readonly name: string }
  readonly minReplicas?: number
  readonly maxReplicas: number
  readonly metrics?: readonly MetricSpec[]
  readonly behavior?: Behavior
}

export interface AutoscalerCondition {
  readonly type: 'AbleToScale' | 'ScalingActive' | 'ScalingLimited'
  readonly status: 'True' | 'False'
  readonly reason: string
  readonly message: string
  /** RFC 3339. */
  readonly lastTransitionTime?: string
}

export interface AutoscalerStatus {
  readonly observedGeneration?: number
  readonly lastScaleTime?: string
  readonly currentReplicas?: number
  readonly desiredReplicas: number
  readonly currentMetrics?: readonly object[] | null
  readonly conditions?: readonly AutoscalerCondition[]
}

export interface Autoscaler extends KubeObject {
  spec?: AutoscalerSpec
  status?: AutoscalerStatus
}

/** The metrics of an autoscaler that names none. */
export const defaultMetrics: readonly MetricSpec[] = [
  { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 80 } } },
]
