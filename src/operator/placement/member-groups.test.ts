import { expect } from 'chai'
import { memberGroupsOf } from './member-groups.ts'

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
