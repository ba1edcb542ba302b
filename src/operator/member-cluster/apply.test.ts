import { expect } from 'chai'
import { transitions } from './apply.ts'
import { memberClusterStatus, type Probe } from './status.ts'

const answered: Probe = {
  kind: 'answered',
  uid: 'u',
  version: 'v1.34.3',
  nodes: { ready: 1, total: 1 },
  capacity: {},
  allocatable: {},
  revision: '7',
}

describe('the Events about a member', () => {
  const conditionsOf = (probe: Probe, state: 'Active' | 'Cordoned' = 'Active') =>
    memberClusterStatus({
      previous: undefined,
      generation: 1,
      state,
      probe,
      twin: undefined,
      placed: [],
      requested: {},
      classes: [],
      nowMs: 0,
      now: '2026-01-01T00:00:00Z',
    }).conditions
  const told = (before: ReturnType<typeof conditionsOf>, after: ReturnType<typeof conditionsOf>): string[] =>
    transitions(before, after).map(({ type, reason }) => `${type} ${reason}`)
  const lost: Probe = { kind: 'unreachable', message: 'no answer within 5 s' }

  it('tell once that it does not answer, and that it answers again', () => {
    expect(told(conditionsOf(answered), conditionsOf(lost))).to.deep.equal(['Warning Unreachable'])
    expect(told(conditionsOf(lost), conditionsOf(answered))).to.deep.equal([
      'Normal Reachable',
      'Normal CredentialsValid',
      'Normal Schedulable',
    ])
  })
  it('tell that an admin closed it, without a warning', () => {
    expect(told(conditionsOf(answered), conditionsOf(answered, 'Cordoned'))).to.deep.equal(['Normal Cordoned'])
  })
  it('tell nothing while nothing changes', () => {
    expect(told(conditionsOf(answered), conditionsOf(answered))).to.deep.equal([])
  })
})
