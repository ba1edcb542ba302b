import { expect } from 'chai'
import type { Autoscaler, MetricSpec } from './autoscaler.ts'
import { planRefused, planScale, type AutoscalerPlan } from './plan.ts'
import { NoMetrics, type MeasuredPod } from './replica-count.ts'
import { noHistory } from './scaling-rules.ts'

const now = Date.parse('2026-01-01T01:00:00Z')
const cpu: MetricSpec = {
  type: 'Resource',
  resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } },
}
const memory: MetricSpec = {
  type: 'Resource',
  resource: { name: 'memory', target: { type: 'AverageValue', averageValue: '100' } },
}

function plan({
  replicas = 4,
  used = {},
  metrics = [cpu],
  min = 1,
  max = 10,
  status,
}: {
  replicas?: number
  /** Percent of the request, by resource; absent: not measured. */
  used?: Record<string, number>
  metrics?: MetricSpec[]
  min?: number
  max?: number
  status?: NonNullable<Autoscaler['status']>
}): AutoscalerPlan {
  const autoscaler: Autoscaler = {
    apiVersion: 'autoscaling/v2',
    kind: 'HorizontalPodAutoscaler',
    metadata: { name: 'web', generation: 3 },
    spec: { scaleTargetRef: { kind: 'Deployment', name: 'web' }, minReplicas: min, maxReplicas: max, metrics },
    ...(status && { status }),
  }
  return planScale({
    autoscaler,
    workload: { specReplicas: replicas, statusReplicas: replicas },
    podsFor: (resource) => {
      const percent = used[resource]
      if (percent === undefined) throw new NoMetrics('no metrics returned from resource metrics API')
      return Array.from({ length: replicas }, (_, i): MeasuredPod => ({
        name: `p${i}`,
        phase: 'Running',
        isDeleting: false,
        ready: { isTrue: true, sinceMs: 0 },
        startMs: 0,
        request: 100_000_000_000n,
        usage: { nanos: BigInt(percent) * 1_000_000_000n, atMs: now, windowMs: 0 },
      }))
    },
    history: noHistory,
    nowMs: now,
  })
}
const reasons = ({ status }: AutoscalerPlan): Record<string, string> =>
  Object.fromEntries((status.conditions ?? []).map(({ type, status: is, reason }) => [type, `${is} ${reason}`]))

describe('the autoscaler of a divided workload', () => {
  it('scales, and says why', () => {
    const { scaleTo, status, events } = plan({ used: { cpu: 75 } })
    expect(scaleTo).to.equal(6)
    expect(events).to.deep.equal([
      {
        type: 'Normal',
        reason: 'SuccessfulRescale',
        message: 'New size: 6; reason: cpu resource utilization (percentage of request) above target',
      },
    ])
    expect(status).to.deep.include({
      observedGeneration: 3,
      currentReplicas: 4,
      desiredReplicas: 6,
      lastScaleTime: '2026-01-01T01:00:00Z',
    })
    expect(status.currentMetrics).to.deep.equal([
      { type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: 75, averageValue: '75' } } },
    ])
  })

  for (const { title, given, scaleTo, conditions } of [
    {
      title: 'does not scale when the number of replicas is right',
      given: { used: { cpu: 50 } },
      conditions: {
        AbleToScale: 'True ReadyForNewScale',
        ScalingActive: 'True ValidMetricFound',
        ScalingLimited: 'False DesiredWithinRange',
      },
    },
    {
      title: 'follows the metric that asks for most',
      given: { used: { cpu: 10, memory: 150 }, metrics: [cpu, memory] },
      scaleTo: 6,
      conditions: {
        AbleToScale: 'True SucceededRescale',
        ScalingActive: 'True ValidMetricFound',
        ScalingLimited: 'False DesiredWithinRange',
      },
    },
    {
      title: 'scales up although one of two metrics is missing',
      given: { used: { cpu: 75 }, metrics: [memory, cpu] },
      scaleTo: 6,
      conditions: {
        AbleToScale: 'True SucceededRescale',
        ScalingActive: 'True ValidMetricFound',
        ScalingLimited: 'False DesiredWithinRange',
      },
    },
    {
      title: 'does not shrink while a metric is missing',
      given: { used: { cpu: 1 }, metrics: [cpu, memory] },
      conditions: { AbleToScale: 'True SucceededGetScale', ScalingActive: 'False FailedGetResourceMetric' },
    },
    {
      title: 'says that it cannot use other types of metrics',
      given: { metrics: [{ type: 'External' }] },
      conditions: { AbleToScale: 'True SucceededGetScale', ScalingActive: 'False FailedGetExternalMetric' },
    },
    {
      title: 'does nothing for a workload that was scaled to zero',
      given: { replicas: 0 },
      conditions: { AbleToScale: 'True SucceededGetScale', ScalingActive: 'False ScalingDisabled' },
    },
    {
      title: 'scales down to the maximum',
      given: { replicas: 12 },
      scaleTo: 10,
      conditions: { AbleToScale: 'True SucceededRescale' },
    },
    {
      title: 'scales up to the minimum',
      given: { min: 6 },
      scaleTo: 6,
      conditions: { AbleToScale: 'True SucceededRescale' },
    },
  ] as { title: string; given: Parameters<typeof plan>[0]; scaleTo?: number; conditions: Record<string, string> }[])
    it(title, () => {
      const planned = plan(given)
      expect(planned.scaleTo).to.equal(scaleTo)
      expect(reasons(planned)).to.deep.equal(conditions)
    })

  it('keeps the time of a condition that stays', () => {
    const { status } = plan({ used: { cpu: 50 } })
    const before = {
      ...status,
      conditions: (status.conditions ?? []).map((one) => ({ ...one, lastTransitionTime: '2025-01-01T00:00:00Z' })),
    }
    const after = plan({ used: { cpu: 50 }, status: before }).status
    expect(after).to.deep.equal(before)
  })

  it('tells which metric is missing, and that no number can be calculated, in the words of kube-controller-manager', () => {
    const failure = 'failed to get memory usage: no metrics returned from resource metrics API'
    const summary = `invalid metrics (1 invalid out of 1), first error is: failed to get memory resource metric value: ${failure}`
    expect(plan({ metrics: [memory] }).events).to.deep.equal([
      { type: 'Warning', reason: 'FailedGetResourceMetric', message: failure },
      { type: 'Warning', reason: 'FailedComputeMetricsReplicas', message: summary },
    ])
  })

  const cpuOf = (percent: number): object => {
    const current = { averageUtilization: percent, averageValue: String(percent) }
    return { type: 'Resource', resource: { name: 'cpu', current } }
  }
  for (const { title, given, metrics } of [
    { title: 'is missing', given: { used: { cpu: 75 }, metrics: [memory, cpu] }, metrics: [{ type: '' }, cpuOf(75)] },
    {
      title: 'is missing and prevents scaling down',
      given: { used: { cpu: 1 }, metrics: [cpu, memory] },
      metrics: [cpuOf(1), { type: '' }],
    },
  ])
    it(`reports the other metrics where kubectl looks for them while one metric ${title}`, () =>
      expect(plan(given).status.currentMetrics).to.deep.equal(metrics))

  it('reports memory in binary units', () =>
    expect(plan({ used: { memory: 4096 }, metrics: [memory] }).status.currentMetrics).to.deep.equal([
      { type: 'Resource', resource: { name: 'memory', current: { averageValue: '4Ki' } } },
    ]))

  it('tells that a scale was refused, and does not count it as a change', () => {
    const planned = plan({ used: { cpu: 75 } })
    const autoscaler: Autoscaler = {
      apiVersion: 'autoscaling/v2',
      kind: 'HorizontalPodAutoscaler',
      metadata: { name: 'web' },
      status: { desiredReplicas: 4, lastScaleTime: '2025-12-31T00:00:00Z' },
    }
    const told = planRefused(planned, { autoscaler, history: noHistory }, new Error('admission webhook says no'))
    expect(told.scaleTo).to.equal(undefined)
    expect(told.history.changes).to.deep.equal([])
    expect(told.history.recommendations).to.deep.equal(planned.history.recommendations)
    expect(told.status).to.deep.include({ desiredReplicas: 4, lastScaleTime: '2025-12-31T00:00:00Z' })
    expect(told.status.conditions?.find(({ type }) => type === 'AbleToScale')).to.deep.include({
      status: 'False',
      reason: 'FailedUpdateScale',
      message: 'the HPA controller was unable to update the target scale: admission webhook says no',
    })
    expect(told.events).to.deep.equal([
      {
        type: 'Warning',
        reason: 'FailedRescale',
        message:
          'New size: 6; reason: cpu resource utilization (percentage of request) above target; error: admission webhook says no',
      },
    ])
  })
})
