import { expect } from 'chai'
import { clusterIdOf } from '#apimachinery/meta/index.ts'
import { eventUp, type MemberEvent } from './event-up.ts'

const clusterId = clusterIdOf('uid of acme')
const space = `${clusterId}-shop`
const about = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'site', namespace: 'shop', uid: 'above' } }

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
    expect(eventUp(event, { member: 'east', clusterId, about })).to.deep.equal({
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'web.1', namespace: 'shop', annotations: { 'kcp.dev/member': 'east' } },
      involvedObject: { apiVersion: 'v1', kind: 'Pod', namespace: 'shop', name: 'site', uid: 'above' },
      related: { kind: 'Node', name: 'node' },
      message: 'Successfully assigned shop/web to node',
      reason: 'Scheduled',
    })
  })

  it('has no more text than an Event of the member may say', () => {
    const long = 'x'.repeat(100_000)
    const event = {
      ...{ apiVersion: 'v1', kind: 'Event', metadata: { name: 'web.1', namespace: space } },
      ...{
        involvedObject: { kind: 'Pod', name: 'web', fieldPath: long, more: long },
        related: { kind: long, name: long },
      },
      ...{ message: long, reason: long, source: { component: long, deep: { a: [long] } }, count: 3, other: long },
    } as MemberEvent
    const up = eventUp(event, { member: 'east', clusterId, about })
    expect(JSON.stringify(up).length).to.be.lessThan(4000)
    expect(up).to.have.property('count', 3)
    expect(up).not.to.have.property('other')
  })
})
