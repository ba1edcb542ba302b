import { expect } from 'chai'
import { nodeUnknown, podNotReady, sliceNotReady } from './lost-members.ts'

const now = '2026-01-01T00:00:00Z'
const pod = (ready: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', uid: 'u', resourceVersion: '7' },
  status: {
    phase: 'Running',
    conditions: [
      { type: 'PodScheduled', status: 'True', lastTransitionTime: 'then' },
      { type: 'Ready', status: ready, lastTransitionTime: 'then' },
    ],
  },
})
const slice = (...endpoints: object[]) => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name: 'web-1', uid: 'u', resourceVersion: '7' },
  endpoints,
})

describe('what is said of a lost member', () => {
  it('makes a Ready pod not Ready, and keeps its other conditions', () => {
    expect(podNotReady(pod('True'), 'east', now)).to.deep.equal({
      metadata: { uid: 'u', resourceVersion: '7' },
      status: {
        conditions: [
          { type: 'PodScheduled', status: 'True', lastTransitionTime: 'then' },
          {
            type: 'Ready',
            status: 'False',
            reason: 'NodeNotReady',
            message: 'member cluster "east", in which the pod is, does not answer',
            lastTransitionTime: now,
          },
        ],
      },
    })
  })

  it('says nothing of a pod that is not Ready, or has not reported yet', () => {
    expect(podNotReady(pod('False'), 'east', now)).to.equal(undefined)
    expect(podNotReady({ ...pod('True'), status: {} }, 'east', now)).to.equal(undefined)
  })

  it('says of a node that its state is not known', () => {
    const node = { ...pod('False'), kind: 'Node' }
    const said = nodeUnknown(node, 'east', now)
    expect(said).to.have.nested.include({ 'status.conditions[1].status': 'Unknown', 'metadata.resourceVersion': '7' })
    expect(nodeUnknown({ ...node, ...said, metadata: node.metadata }, 'east', now)).to.equal(undefined)
  })

  it('makes endpoints not ready, also those that do not say', () => {
    expect(
      sliceNotReady(slice({ addresses: ['10.0.0.1'] }, { conditions: { ready: true, serving: true } })),
    ).to.deep.equal({
      metadata: { uid: 'u', resourceVersion: '7', annotations: { 'kcp.dev/member-lost': 'true' } },
      endpoints: [
        { addresses: ['10.0.0.1'], conditions: { ready: false, serving: false } },
        { conditions: { ready: false, serving: false } },
      ],
    })
  })

  it('says nothing of a slice without ready endpoints', () => {
    expect(sliceNotReady(slice())).to.equal(undefined)
    expect(sliceNotReady(slice({ conditions: { ready: false, serving: false } }))).to.equal(undefined)
  })
})
