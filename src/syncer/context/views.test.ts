import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { placedOnAnnotation, syncerFinalizer } from '#crds/index.ts'
import { Views } from './views.ts'

function workload(state: 'Syncing' | 'Serving'): KubeObject {
  const annotations = { [placedOnAnnotation]: JSON.stringify({ east: { state } }) }
  const metadata = { name: 'web', namespace: 'shop', annotations, finalizers: [syncerFinalizer('east')] }
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec: {} }
}

describe('the views of namespaces for one member', () => {
  it('are kept for namespaces of which the member has something, and only as long as it has', () => {
    const content = { workloads: [] as KubeObject[], claims: [], ingresses: [], accounts: [] }
    const member = { name: 'east', id: 'east', serviceNetwork: 'None' } as const
    const views = new Views(
      member,
      () => content,
      () => ['shop'],
    )
    for (let i = 0; i < 100; i++) expect(views.of('acme', `space-${i}`).present).to.equal(false)
    expect(views.size).to.equal(0)

    content.workloads.push(workload('Syncing'))
    const come = views.change('acme', 'shop', 'deployments', { before: undefined, after: workload('Syncing') })
    expect([...come.namespaces], 'the Services of the namespace follow').to.deep.equal(['shop'])
    expect(views.size).to.equal(1)

    content.workloads.pop()
    const gone = views.change('acme', 'shop', 'deployments', { before: workload('Syncing'), after: undefined })
    expect([...gone.namespaces], 'they go with it').to.deep.equal(['shop'])
    expect(views.size).to.equal(0)
    expect([...views.presentIn('acme')]).to.deep.equal([])
  })
})
