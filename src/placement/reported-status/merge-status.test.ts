import { expect } from 'chai'
import { contentHash, workloadKindOf, type CopyState } from '#crds/index.ts'
import { mergeStatus, type MergeInput } from './merge-status.ts'

const condition = (type: string, status: string): { type: string; status: string } => ({ type, status })
const report = (available: number, parts: object = {}): MergeInput['reported'][string] => ({
  observed: contentHash('spec'),
  replicas: 2,
  updatedReplicas: 2,
  readyReplicas: available,
  availableReplicas: available,
  conditions: [condition('Available', available === 2 ? 'True' : 'False')],
  ...parts,
})
const merge = ({
  states = {},
  ...parts
}: Partial<MergeInput> & { states?: Record<string, CopyState> }): Record<string, unknown> =>
  mergeStatus({
    generation: 7,
    spec: 'spec',
    previous: {},
    rule: workloadKindOf('deployments')?.status ?? { summed: [], taken: [], observes: false },
    reported: {},
    copies: Object.fromEntries(Object.entries(states).map(([member, state]) => [member, { state }])),
    now: '2026-01-01T00:00:00Z',
    ...parts,
  })

describe('the status of a Deployment in several members', () => {
  it("keeps the scheduler's condition beside those of members", () => {
    const placed = { ...condition('Placed', 'False'), message: 'there is no member cluster "mars"' }
    const status = merge({
      reported: { east: report(2) },
      states: { east: 'Serving' },
      previous: { conditions: [condition('Progressing', 'True'), placed] },
    })
    expect(status['conditions']).to.deep.equal([condition('Available', 'True'), placed])
  })
  it('says why a member makes no pods of a copy that is to replace another one', () => {
    const failure = { ...condition('ReplicaFailure', 'True'), message: 'exceeded quota' }
    const reported = { east: report(2), west: report(0, { conditions: [condition('Available', 'False'), failure] }) }
    const conditionsWith = (west: CopyState): unknown =>
      merge({ reported, states: { east: 'Serving', west } })['conditions']
    const available = condition('Available', 'True')
    expect(conditionsWith('Applied')).to.deep.equal([available, { ...failure, message: 'west: exceeded quota' }])
    expect(conditionsWith('Terminating')).to.deep.equal([available])
  })
  it('sums counts', () => {
    const status = merge({
      reported: { east: report(2), west: report(1) },
      states: { east: 'Serving', west: 'Serving' },
    })
    expect(status).to.include({ replicas: 4, updatedReplicas: 4, readyReplicas: 3, availableReplicas: 3 })
  })
  for (const { title, reported, states, previous = {}, expected } of [
    {
      title: 'once every target has observed it',
      reported: { east: report(2), west: report(2) },
      states: { east: 'Serving', west: 'Applied' },
      expected: 7,
    },
    {
      title: 'not while one target has not observed it',
      reported: { east: report(2), west: report(2, { observed: 'old' }) },
      states: { east: 'Serving', west: 'Syncing' },
      expected: undefined,
    },
    {
      title: 'not while one target has reported nothing',
      reported: { east: report(2) },
      states: { east: 'Serving', west: 'Syncing' },
      expected: undefined,
    },
    { title: 'not without any target', reported: {}, states: {}, expected: undefined },
    {
      title: 'without regard to a draining copy',
      reported: { east: report(2, { observed: 'old' }), west: report(2) },
      states: { east: 'Draining', west: 'Serving' },
      expected: 7,
    },
    {
      title: 'and does not decrease it',
      reported: { east: report(2, { observed: 'old' }) },
      states: { east: 'Serving' },
      previous: { observedGeneration: 6 },
      expected: 6,
    },
  ] as {
    title: string
    reported: MergeInput['reported']
    states: Record<string, CopyState>
    previous?: MergeInput['previous']
    expected?: number
  }[]) {
    it(`reports the generation as observed: ${title}`, () =>
      expect(merge({ reported, states, previous })['observedGeneration']).to.equal(expected))
  }
  it('leaves out a lost member once another copy serves, and keeps its numbers until then', () => {
    const reported = { east: report(2), west: report(1) }
    const of = (west: CopyState): unknown => merge({ reported, states: { east: 'Lost', west } })['availableReplicas']
    expect([of('Applied'), of('Serving')]).to.deep.equal([3, 1])
  })
  it('is Available while one copy serves and another one is starting', () => {
    const { conditions } = merge({
      reported: { east: report(2), west: report(0) },
      states: { east: 'Serving', west: 'Applied' },
    })
    expect(conditions).to.deep.equal([condition('Available', 'True')])
  })
  it('takes the worst condition of the copies that serve', () => {
    const { conditions } = merge({
      reported: { east: report(2), west: report(0) },
      states: { east: 'Serving', west: 'Serving' },
    })
    expect(conditions).to.deep.equal([condition('Available', 'False')])
  })
  it('shows why an object cannot be synced, with the member’s message', () => {
    const { conditions } = merge({ reported: { east: { error: 'no such field' } }, states: { east: 'Syncing' } })
    expect(conditions).to.have.nested.property('[0].message', 'east: no such field')
  })
})

describe('the status of a Job', () => {
  const rule = workloadKindOf('jobs')?.status ?? { summed: [], taken: [], observes: false }
  const ended = { observed: contentHash('spec'), succeeded: 1, conditions: [condition('Complete', 'True')] }

  it('is that of its member', () => {
    expect(merge({ rule, reported: { east: ended }, previous: { active: 1 } })).to.deep.equal({
      succeeded: 1,
      conditions: [condition('Complete', 'True')],
    })
  })
  it('stays while its member reports only an error', () => {
    const status = merge({ rule, reported: { east: { error: 'too large' } }, previous: { active: 1 } })
    expect(status).to.include({ active: 1 })
  })
})

describe('the addresses of an Ingress in several members', () => {
  const at = (ip: string, hidesAddresses = false): MergeInput['reported'][string] => ({
    loadBalancer: { ingress: [{ ip }] },
    ...(hidesAddresses && { hidesAddresses }),
  })
  const addresses = (reported: MergeInput['reported']): unknown =>
    merge({ rule: { summed: [], taken: [], joinsAddresses: true, observes: false }, reported })['loadBalancer']

  it('are those of all members', () => {
    expect(addresses({ east: at('192.0.2.1'), west: at('192.0.2.2') })).to.deep.equal({
      ingress: [{ ip: '192.0.2.1' }, { ip: '192.0.2.2' }],
    })
  })
  it('are not those of a member in which nothing serves, yet or any more', () => {
    expect(addresses({ east: at('192.0.2.1', true), west: at('192.0.2.2') })).to.deep.equal({
      ingress: [{ ip: '192.0.2.2' }],
    })
  })
  it('are those of such a member while there are no others', () => {
    const ingress = [{ ip: '192.0.2.1' }]
    expect(addresses({ east: at('192.0.2.1', true), west: {} })).to.deep.equal({ ingress })
  })
})

describe('the status of an autoscaler that another member takes over', () => {
  const rule: MergeInput['rule'] = {
    summed: [],
    taken: ['currentReplicas', 'desiredReplicas'],
    observes: false,
    conditions: 'plain',
    awaitsConditions: true,
  }
  const previous = { currentReplicas: 8, desiredReplicas: 8, conditions: [condition('ScalingActive', 'True')] }

  it('stays until the autoscaler there has looked', () =>
    expect(merge({ rule, previous, reported: { west: { observed: contentHash('spec') } } })).to.deep.equal(previous))

  it('is what the autoscaler there says from then on', () => {
    const conditions = [condition('ScalingActive', 'False')]
    const west = { observed: contentHash('spec'), currentReplicas: 6, desiredReplicas: 6, conditions }
    expect(merge({ rule, previous, reported: { west } })).to.deep.equal({
      currentReplicas: 6,
      desiredReplicas: 6,
      conditions,
    })
  })

  it('says that it cannot be synced beside what is known', () => {
    const { conditions, ...counts } = merge({ rule, previous, reported: { west: { error: 'refused' } } })
    expect(counts).to.deep.equal({ currentReplicas: 8, desiredReplicas: 8 })
    expect((conditions as { type: string }[]).map(({ type }) => type)).to.deep.equal(['ScalingActive', 'Synced'])
  })
})
