import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { builtInResource } from './resources/builtin-resources.ts'
import { storageOf, type StorageForm } from './conversions.ts'

function formOf(group: string, resource: string, version = 'v1'): StorageForm {
  const info = builtInResource({ group, version, resource })
  if (info === undefined) throw new Error(`${resource} is not built in`)
  return storageOf(info)
}

describe('storageOf', () => {
  it('stores most resources as they are served', () => {
    expect(formOf('apps', 'deployments')).to.deep.equal({
      storageKey: 'deployments.apps',
      storageApiVersion: 'apps/v1',
    })
  })

  it('stores both kinds of Event under one key', () => {
    expect(formOf('events.k8s.io', 'events').storageKey).to.equal(formOf('', 'events').storageKey)
  })

  it('converts an Event to storage and back without a change', () => {
    const { toStorage, fromStorage } = formOf('events.k8s.io', 'events')
    const event: KubeObject = {
      kind: 'Event',
      apiVersion: 'events.k8s.io/v1',
      metadata: { name: 'e' },
      regarding: { kind: 'Pod', name: 'p' },
      note: 'text',
      reportingController: 'c',
      deprecatedCount: 2,
      reason: 'Started',
    }
    const stored = toStorage?.(event)
    expect(stored).to.include({ apiVersion: 'v1', message: 'text', reportingComponent: 'c', count: 2 })
    expect(stored && fromStorage?.(stored)).to.deep.equal(event)
  })

  describe('for a HorizontalPodAutoscaler', () => {
    const { toStorage, fromStorage } = formOf('autoscaling', 'horizontalpodautoscalers')
    const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }
    const v2: KubeObject = {
      kind: 'HorizontalPodAutoscaler',
      apiVersion: 'autoscaling/v2',
      metadata: { name: 'h', annotations: { mine: 'x' } },
      spec: {
        scaleTargetRef,
        maxReplicas: 5,
        metrics: [
          { type: 'Pods', pods: { metric: { name: 'rps' }, target: { type: 'AverageValue', averageValue: '10' } } },
          { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 70 } } },
        ],
        behavior: {
          scaleDown: { stabilizationWindowSeconds: 60, policies: [{ type: 'Pods', value: 1, periodSeconds: 5 }] },
        },
      },
      status: { currentReplicas: 1, desiredReplicas: 2, conditions: [{ type: 'AbleToScale', status: 'True' }] },
    }

    it('shows the CPU target in v1 and loses nothing on the way back', () => {
      const v1 = fromStorage?.(v2)
      expect(v1?.['spec']).to.deep.equal({ scaleTargetRef, maxReplicas: 5, targetCPUUtilizationPercentage: 70 })
      expect(v1?.metadata.annotations).to.have.property('autoscaling.alpha.kubernetes.io/metrics')
      expect(v1 && toStorage?.(v1)).to.deep.equal(v2)
    })

    it('defaults to 80 % CPU utilization if v1 names no metric', () => {
      const stored = toStorage?.({ ...v2, apiVersion: 'autoscaling/v1', spec: { scaleTargetRef, maxReplicas: 5 } })
      expect(stored?.['spec']).to.have.nested.property('metrics[0].resource.target.averageUtilization', 80)
    })
  })
})
