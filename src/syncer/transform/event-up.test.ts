import { expect } from 'chai'
import { clusterIdOf } from '../../apimachinery/meta/index.ts'
import { eventUp, type MemberEvent } from './event-up.ts'

const clusterId = clusterIdOf('uid of acme')
const space = `${clusterId}-shop`

describe('an Event of a member', () => {
  it('tells its tenant of upstream objects and namespaces only', () => {
    const event: MemberEvent = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'web.1', namespace: space, uid: 'below', resourceVersion: '7' },
      involvedObject: { kind: 'Pod', namespace: space, name: 'web', uid: 'below', resourceVersion: '6' },
      related: { kind: 'Node', name: 'node' },
      message: `Successfully assigned ${space}/web to node`,
      reason: 'Scheduled',
    }
    expect(eventUp(event, { namespace: 'shop', clusterId, name: 'site', uid: 'above' })).to.deep.equal({
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'web.1', namespace: 'shop' },
      involvedObject: { kind: 'Pod', namespace: 'shop', name: 'site', uid: 'above' },
      related: { kind: 'Node', name: 'node' },
      message: 'Successfully assigned shop/web to node',
      reason: 'Scheduled',
    })
  })
})
