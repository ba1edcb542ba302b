import fc from 'fast-check'
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { nodeUp } from './node-up.ts'

const secret = 'of-another-tenant'
const text = fc.constant(secret)
const anything = fc.dictionary(fc.constantFrom('a', 'team/tenant', secret), text)
/** A node with a secret in each field that may reveal other tenants. */
const nodes = fc.record({
  apiVersion: fc.constant('v1'),
  kind: fc.constant('Node'),
  metadata: fc.record({
    name: fc.constant('worker-1'),
    uid: text,
    resourceVersion: text,
    labels: anything,
    annotations: anything,
    ownerReferences: fc.array(anything),
    managedFields: fc.array(anything),
  }),
  spec: fc.record({
    podCIDR: text,
    providerID: text,
    unschedulable: fc.boolean(),
    taints: fc.array(fc.record({ key: text, effect: fc.constant('NoSchedule') })),
  }),
  status: fc.record({
    capacity: fc.constant({ cpu: '4', pods: '110' }),
    allocatable: fc.constant({ cpu: '3', pods: '110' }),
    addresses: fc.array(fc.record({ type: fc.constant('InternalIP'), address: text })),
    images: fc.array(fc.record({ names: fc.array(text) })),
    volumesInUse: fc.array(text),
    volumesAttached: fc.array(fc.record({ name: text })),
    config: anything,
    runtimeHandlers: fc.array(fc.record({ name: text })),
    nodeInfo: fc.record({ machineID: text, systemUUID: text, bootID: text, kubeletVersion: fc.constant('v1.34.3') }),
    conditions: fc.array(
      fc.record({
        type: fc.constantFrom('Ready', secret),
        status: fc.constant('True'),
        message: text,
        lastHeartbeatTime: text,
      }),
    ),
  }),
}) as unknown as fc.Arbitrary<KubeObject>

describe('a node of a member as tenants see it', () => {
  it('shows nothing that may tell of others', () => {
    fc.assert(
      fc.property(nodes, (node) => {
        const shown = nodeUp(node)
        expect(JSON.stringify(shown)).to.not.contain(secret)
        expect(shown.metadata.name).to.equal('worker-1')
        expect(shown.status).to.deep.include({ capacity: { cpu: '4', pods: '110' } })
        expect(shown.status.nodeInfo['kubeletVersion']).to.equal('v1.34.3')
      }),
    )
  })
})
