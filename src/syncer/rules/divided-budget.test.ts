import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { placedOnAnnotation, syncerFinalizer } from '#crds/index.ts'
import { NamespaceView } from '#syncer/context/namespace-view.ts'
import { withBudgetShare, withRolloutShare } from './divided-budget.ts'

const workload = (name: string, copies: Record<string, { state: string; replicas?: number }>): KubeObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: {
    name,
    annotations: { [placedOnAnnotation]: JSON.stringify(copies) },
    finalizers: [syncerFinalizer('east')],
  },
  spec: { replicas: 5, template: { metadata: { labels: { app: name } }, spec: { containers: [] } } },
})
const viewOf = (...workloads: KubeObject[]): NamespaceView =>
  new NamespaceView({ workloads, claims: [], ingresses: [], accounts: [] }, 'east', () => false)
const divided = workload('web', {
  east: { state: 'Serving', replicas: 3 },
  west: { state: 'Serving', replicas: 2 },
  gone: { state: 'Held' },
})
const whole = workload('web', { east: { state: 'Serving' }, west: { state: 'Serving' } })
const budget = (app: string): KubeObject => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'web' },
  spec: { minAvailable: 3, selector: { matchLabels: { app } } },
})
const minAvailable = (view: NamespaceView, app = 'web'): unknown =>
  (withBudgetShare(budget(app), view, 'east')['spec'] as { minAvailable?: unknown }).minAvailable

describe('a workload that a member runs together with others', () => {
  it('has its part of the budget there', () => {
    expect(minAvailable(viewOf(divided))).to.equal(2)
    expect(minAvailable(viewOf(whole))).to.equal(3)
    expect(minAvailable(viewOf(divided), 'other')).to.equal(3)
  })

  for (const { spec, expected } of [
    { spec: { maxUnavailable: 1 }, expected: { maxUnavailable: 0 } },
    { spec: { maxUnavailable: 2 }, expected: { maxUnavailable: 1 } },
    { spec: { minAvailable: 3 }, expected: { minAvailable: 3 } },
  ])
    it(`may lose one pod less where a StatefulSet moves pod by pod, with ${JSON.stringify(spec)}`, () => {
      const copies = {
        east: { state: 'Serving', replicas: 3, start: 0 },
        west: { state: 'Serving', replicas: 2, start: 3 },
      }
      const view = viewOf({ ...workload('web', copies), kind: 'StatefulSet' })
      const selector = { matchLabels: { app: 'web' } }
      const copy = withBudgetShare({ ...budget('web'), spec: { ...spec, selector } }, view, 'east')
      expect(copy['spec']).to.deep.equal({ selector, ...expected })
    })

  for (const { title, of, rollingUpdate, expected } of [
    {
      title: 'its part',
      of: { east: 3, west: 2 },
      rollingUpdate: { maxUnavailable: 2, maxSurge: 1 },
      expected: [1, 1],
    },
    {
      title: 'all of it, if it is the largest',
      of: { east: 3, west: 2 },
      rollingUpdate: { maxUnavailable: 1 },
      expected: [1, undefined],
    },
    {
      title: 'nothing, but one pod more',
      of: { east: 2, west: 3 },
      rollingUpdate: { maxUnavailable: 1, maxSurge: 0 },
      expected: [0, 1],
    },
    {
      title: 'nothing',
      of: { east: 2, west: 3 },
      rollingUpdate: { maxUnavailable: 1, maxSurge: '25%' },
      expected: [0, '25%'],
    },
    {
      title: 'the same percentage',
      of: { east: 2, west: 3 },
      rollingUpdate: { maxUnavailable: '25%' },
      expected: ['25%', undefined],
    },
  ])
    it(`ends in a rollout, of the pods that may be missing, ${title}`, () => {
      const copies = Object.entries(of).map(([name, replicas]) => [name, { state: 'Serving', replicas }])
      const object = workload('web', Object.fromEntries(copies) as Record<string, { state: string; replicas: number }>)
      const copy = {
        ...object,
        spec: { ...(object['spec'] as object), strategy: { type: 'RollingUpdate', rollingUpdate } },
      }
      const shared = (withRolloutShare(copy, viewOf(object), 'east')['spec'] as { strategy: { rollingUpdate: object } })
        .strategy
      expect(shared.rollingUpdate).to.deep.equal(
        JSON.parse(JSON.stringify({ maxUnavailable: expected[0], maxSurge: expected[1] })),
      )
    })

  it('has the rollout of its tenant where it alone runs it', () => {
    const copy = { ...whole, spec: { strategy: { rollingUpdate: { maxUnavailable: 1 } } } }
    expect(withRolloutShare(copy, viewOf(whole), 'east')).to.equal(copy)
  })
})
