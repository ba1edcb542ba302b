import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { listOf } from '#apimachinery/quantity/index.ts'
import type { MemberCluster } from '#crds/index.ts'
import { limitsOf } from '#placement/index.ts'
import { CopyCount, memberGroupsOf, MemberUsage } from './member-usage.ts'

function workload(replicas: number, members: Record<string, string> = {}): KubeObject {
  const placed = Object.fromEntries(Object.entries(members).map(([name, state]) => [name, { state }]))
  const containers = [{ resources: { requests: { cpu: '500m' } } }]
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', annotations: { 'kcp.dev/placed-on': JSON.stringify(placed) } },
    spec: { replicas, template: { spec: { containers } } },
  }
}

describe('what workloads request of members', () => {
  const usage = new MemberUsage()
  const requested = (member: string, without = ''): Record<string, string> =>
    listOf(usage.requestedIn(member, { without }))

  it('counts a decision before the object contains it, and counts it once afterwards', () => {
    usage.assume('a', { east: { state: 'Assumed' } }, workload(2))
    expect(requested('east')).to.deep.equal({ cpu: '1', pods: '2' })
    usage.observe('a', workload(2))
    expect(requested('east'), 'an older object').to.deep.equal({ cpu: '1', pods: '2' })
    usage.observe('a', workload(2, { east: 'Syncing' }))
    expect(requested('east')).to.deep.equal({ cpu: '1', pods: '2' })
    expect(requested('east', 'a'), 'by all others').to.deep.equal({ cpu: '0', pods: '0' })
  })
  it('follows the number of replicas, and counts a copy until it is gone', () => {
    usage.observe('a', workload(3, { east: 'Draining', west: 'Serving' }))
    expect([requested('east'), requested('west')]).to.deep.equal([
      { cpu: '1500m', pods: '3' },
      { cpu: '1500m', pods: '3' },
    ])
    usage.observe('a', workload(3, { west: 'Serving' }))
    expect(requested('east')).to.deep.equal({})
  })
  it('counts the replicas of a divided workload in a member: the observed or the decided number, whichever is larger', () => {
    const divided = new MemberUsage()
    const podsIn = (member: string): string | undefined => listOf(divided.requestedIn(member, { without: '' }))['pods']
    divided.assume(
      'a',
      { east: { state: 'Serving', replicas: 2 }, west: { state: 'Assumed', replicas: 1 } },
      workload(3),
    )
    expect([podsIn('east'), podsIn('west')]).to.deep.equal(['2', '1'])
    divided.observe('a', workload(3, { east: 'Serving' }))
    expect([podsIn('east'), podsIn('west')], 'an older object').to.deep.equal(['3', '1'])
  })
  it('forgets a decision that could not be written, and deleted workloads', () => {
    usage.assume('b', { east: { state: 'Assumed' } }, workload(1))
    usage.forget('b', workload(1))
    usage.observe('a', undefined)
    expect([requested('east'), requested('west')]).to.deep.equal([{}, {}])
  })
})

describe('the limits of a member', () => {
  const limits = (spec: MemberCluster['spec'], status: MemberCluster['status']): object | undefined => {
    const found = limitsOf({
      apiVersion: 'kcp.dev/v1alpha1',
      kind: 'MemberCluster',
      metadata: { name: 'a' },
      spec,
      status,
    } as MemberCluster)
    return found && listOf(found)
  }
  const status = { allocatable: { cpu: '8', memory: '16Gi' } }
  it('are those of its spec, else what its nodes can allocate, less the reserve', () => {
    expect(limits({}, {})).to.equal(undefined)
    expect(limits({}, status)).to.deep.equal({ cpu: '8', memory: '16Gi' })
    expect(limits({ capacity: { reservePercent: 25 } }, status)).to.deep.equal({ cpu: '6', memory: '12Gi' })
    expect(limits({ capacity: { limits: { pods: '10' } } }, status)).to.deep.equal({ pods: '10' })
  })
})

describe('a count of copies', () => {
  it('changes as workloads are created, moved and deleted', () => {
    const count = new CopyCount()
    expect(count.isEmpty).to.equal(true)
    count.replace([], ['east'])
    count.replace([], ['east', 'west'])
    expect([count.of('east'), count.of('west'), count.of('north')]).to.deep.equal([2, 1, 0])
    count.replace(['east'], ['east', 'north'])
    expect([count.of('east'), count.of('west'), count.of('north')]).to.deep.equal([2, 1, 1])
    count.replace(['east', 'west'], [])
    count.replace(['east', 'north'], ['north'])
    expect([count.of('east'), count.of('west'), count.of('north')]).to.deep.equal([0, 0, 1])
    expect(count.isEmpty).to.equal(false)
    count.replace(['north'], [])
    expect(count.isEmpty).to.equal(true)
  })

  it('lists the members of the other workloads', () => {
    const count = new CopyCount()
    count.replace([], ['east', 'west'])
    expect(count.without(['east', 'west'])).to.deep.equal([])
    expect(count.without([])).to.deep.equal(['east', 'west'])
    count.replace([], ['west', 'north'])
    expect(count.without(['east', 'west'])).to.deep.equal(['west', 'north'])
    expect(count.without(['west', 'north'])).to.deep.equal(['east', 'west'])
  })
})

describe('the workloads that a change of a member concerns', () => {
  for (const { title, states, held, expected } of [
    { title: 'are not those that serve elsewhere', states: { east: 'Serving' }, expected: ['member east'] },
    {
      title: 'are those that move',
      states: { east: 'Serving', west: 'Syncing' },
      expected: ['member east', 'member west', 'unsettled'],
    },
    { title: 'are not those that start elsewhere', states: { east: 'Applied' }, expected: ['member east'] },
    {
      title: 'are those that start elsewhere and wait too long',
      states: { east: 'Applied' },
      held: 'it has waited',
      expected: ['member east', 'unsettled'],
    },
    {
      title: 'are those that have not begun to start',
      states: { east: 'Assumed' },
      expected: ['member east', 'unsettled'],
    },
    { title: 'are those that nothing could take', states: {}, expected: ['unsettled'] },
    {
      title: 'are those that stay because nothing else fits',
      states: { east: 'Serving' },
      held: 'full',
      expected: ['member east', 'unsettled'],
    },
  ] as { title: string; states: Record<string, string>; held?: string; expected: string[] }[]) {
    it(title, () => {
      const placed = Object.fromEntries(Object.entries(states).map(([member, state]) => [member, { state }]))
      const annotations = { 'kcp.dev/placed-on': JSON.stringify(placed), ...(held && { 'kcp.dev/held': held }) }
      const workload = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { annotations } }
      expect(memberGroupsOf(workload)).to.deep.equal(expected)
    })
  }

  it('are divided ones: any member may get a part', () => {
    const annotations = { 'kcp.dev/placed-on': JSON.stringify({ east: { state: 'Serving', replicas: 6 } }) }
    const workload = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { annotations } }
    expect(memberGroupsOf(workload)).to.deep.equal(['member east', 'unsettled'])
  })
})
