import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { memberAnnotation, placedOnAnnotation, templateAnnotation } from './sync-contract.ts'
import { hasEnded, isPlaceable, templateOf, withTemplate } from './workload-kinds.ts'

const controlledBy = (apiVersion: string, kind: string): Partial<KubeObject['metadata']> => ({
  ownerReferences: [{ apiVersion, kind, name: 'o', uid: 'o', controller: true }],
})
const workload = (kind: string, more: Partial<KubeObject['metadata']> = {}, spec = {}, status = {}): KubeObject => ({
  apiVersion: 'v1',
  kind,
  metadata: { name: 'w', ...more },
  spec,
  status,
})
const annotated = (...names: string[]): Partial<KubeObject['metadata']> => ({
  annotations: Object.fromEntries(names.map((name) => [name, '{}'])),
})

describe('a workload', () => {
  for (const { title, given, expected } of [
    { title: 'of a tenant is placed', given: workload('Pod'), expected: true },
    { title: 'that a member made is not', given: workload('Pod', annotated(memberAnnotation)), expected: false },
    {
      title: 'of a tenant that runs in a member is still placed',
      given: workload('Pod', annotated(memberAnnotation, placedOnAnnotation)),
      expected: true,
    },
    {
      title: 'in the history of a Deployment is not',
      given: workload('ReplicaSet', annotated(templateAnnotation)),
      expected: false,
    },
    {
      title: 'made for a workload that is placed is not',
      given: workload('Pod', controlledBy('apps/v1', 'StatefulSet')),
      expected: false,
    },
    {
      title: 'made by an operator for a kind of its own is placed',
      given: workload('Pod', controlledBy('db.example/v1', 'StatefulSet')),
      expected: true,
    },
    {
      title: 'that somebody made from a CronJob is placed',
      given: workload('Job', controlledBy('batch/v1', 'CronJob')),
      expected: true,
    },
    { title: 'that somebody bound to a node is not', given: workload('Pod', {}, { nodeName: 'n' }), expected: false },
    { title: 'of another kind is not', given: workload('ConfigMap'), expected: false },
  ])
    it(title, () => expect(isPlaceable(given)).to.equal(expected))

  for (const { title, given, expected } of [
    {
      title: 'has ended as a pod that succeeded',
      given: workload('Pod', {}, {}, { phase: 'Succeeded' }),
      expected: true,
    },
    {
      title: 'has ended as a Job that failed',
      given: workload('Job', {}, {}, { conditions: [{ type: 'Failed', status: 'True' }] }),
      expected: true,
    },
    { title: 'has not ended while it runs', given: workload('Pod', {}, {}, { phase: 'Running' }), expected: false },
    {
      title: 'never ends as a Deployment',
      given: workload('Deployment', {}, {}, { conditions: [{ type: 'Failed', status: 'True' }] }),
      expected: false,
    },
  ])
    it(title, () => expect(hasEnded(given)).to.equal(expected))

  it('that is a pod is its own template, without its node and what we wrote on it', () => {
    const pod = workload(
      'Pod',
      { labels: { app: 'w' }, annotations: { 'example.com/a': 'b', [placedOnAnnotation]: '{}' } },
      { nodeName: 'n', containers: [] },
    )
    const template = templateOf(pod)
    expect(template).to.deep.equal({
      metadata: { labels: { app: 'w' }, annotations: { 'example.com/a': 'b' } },
      spec: { containers: [] },
    })
    expect(withTemplate({ ...pod, spec: {} }, template)['spec']).to.deep.equal({ containers: [] })
  })
})
