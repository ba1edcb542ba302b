import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { podPatch } from './pod-patch.ts'

const containers = [
  { name: 'web', image: 'a:1', resources: { requests: { cpu: '1' } } },
  { name: 'side', image: 'b:1' },
]

function pod({ labels = {}, annotations = {}, spec = {}, status = {}, metadata = {} }): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'shop', labels, annotations, ...metadata },
    spec: { containers, ...spec },
    status,
  }
}

const access = [{ name: 'KUBERNETES_SERVICE_HOST', value: 'kcp.example' }]
const live = pod({ spec: { containers: [{ ...containers[0], env: [...access, { name: 'OTHER', value: '1' }] }] } })

describe('the patch of a pod in its member', () => {
  for (const { title, subresource = '', from = {}, to, patch } of [
    { title: 'is undefined without a change', to: {}, patch: undefined },
    {
      title: 'sets and removes labels',
      from: { labels: { a: '1', b: '1' } },
      to: { labels: { b: '2', c: '1' } },
      patch: { metadata: { labels: { a: null, b: '2', c: '1' } } },
    },
    {
      title: 'has only annotations that the member allows',
      to: {
        annotations: { 'prometheus.io/port': '1', 'allowed/x': '1', 'example.com/x': '1', 'kcp.dev/clusters': 'a' },
      },
      patch: { metadata: { annotations: { 'prometheus.io/port': '1', 'allowed/x': '1' } } },
    },
    {
      title: 'has no labels of kcp, no owners and no finalizers',
      to: { labels: { 'kcp.dev/serving': 'true' }, metadata: { finalizers: ['a/b'], ownerReferences: [] } },
      patch: undefined,
    },
    {
      title: 'changes images by the name of their container',
      to: { spec: { containers: [containers[0], { name: 'side', image: 'b:2' }], activeDeadlineSeconds: 5 } },
      patch: { spec: { containers: [{ name: 'side', image: 'b:2' }], activeDeadlineSeconds: 5 } },
    },
    {
      title: 'removes scheduling gates',
      from: { spec: { schedulingGates: [{ name: 'a' }, { name: 'b' }] } },
      to: { spec: { schedulingGates: [{ name: 'b' }] } },
      patch: { spec: { schedulingGates: [{ name: 'a', $patch: 'delete' }] } },
    },
    {
      title: 'does not change the nodeSelector of a pod without scheduling gates',
      from: { spec: { nodeSelector: { disk: 'fast' } } },
      to: { spec: { nodeSelector: { disk: 'fast', gpu: 'yes' } } },
      patch: undefined,
    },
    {
      title: 'changes resources on resize only',
      subresource: 'resize',
      to: { spec: { containers: [{ ...containers[0], resources: { requests: { cpu: '2' } } }, containers[1]] } },
      patch: { spec: { containers: [{ name: 'web', resources: { requests: { cpu: '2' } } }] } },
    },
    {
      title: 'adds ephemeral containers with the address of the API and the namespace of the logical cluster',
      subresource: 'ephemeralcontainers',
      from: { spec: { ephemeralContainers: [{ name: 'first' }] } },
      to: {
        spec: {
          ephemeralContainers: [
            { name: 'first' },
            { name: 'second', env: [{ name: 'NS', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } }] },
          ],
        },
      },
      patch: {
        spec: { ephemeralContainers: [{ name: 'second', env: [...access, { name: 'NS', value: 'shop' }] }] },
      },
    },
    {
      title: 'has conditions and the message of the status, without addresses and phase',
      subresource: 'status',
      from: { status: { phase: 'Running', conditions: [{ type: 'A', status: 'True' }, { type: 'B' }] } },
      to: {
        status: { phase: 'Failed', podIP: '10.0.0.1', message: 'm', conditions: [{ type: 'A', status: 'False' }] },
      },
      patch: {
        status: {
          conditions: [
            { type: 'A', status: 'False' },
            { type: 'B', $patch: 'delete' },
          ],
          message: 'm',
        },
      },
    },
  ]) {
    it(title, () => {
      const change = { subresource, old: pod(from), next: pod(to), live, annotationPrefixes: ['allowed/'] }
      expect(podPatch(change)).to.deep.equal(patch)
    })
  }

  const relabelled = (annotations: Record<string, string>): (() => unknown) => {
    const old = pod({ annotations, labels: { 'pod-template-hash': 'a' } })
    const change = { subresource: '', old, next: pod({ annotations }), live, annotationPrefixes: [] }
    return () => podPatch(change)
  }
  it('is refused where a label ties the pod to its owner in the member', () => {
    expect(relabelled({}))
      .to.throw()
      .that.satisfies((error: unknown) => isStatusError(error, 'Forbidden'))
  })
  it('changes a label such as pod-template-hash of a pod that the tenant made', () => {
    expect(relabelled({ 'kcp.dev/placed-on': '{}' })()).to.deep.equal({
      metadata: { labels: { 'pod-template-hash': null } },
    })
  })
})
