import { expect } from 'chai'
import type { KubeObject } from '../apimachinery/meta/index.ts'
import { placedOnAnnotation, syncerFinalizer } from '../crds/index.ts'
import { withBudgetShare } from './divided-budget.ts'
import { NamespaceView } from './namespace-view.ts'

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
})
