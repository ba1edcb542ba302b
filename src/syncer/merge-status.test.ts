import { expect } from 'chai'
import { mergeDeploymentStatus, type MergeInput } from './merge-status.ts'

const condition = (type: string, status: string): { type: string; status: string } => ({ type, status })
const piece = (available: number, parts: object = {}): MergeInput['pieces'][string] => ({
  observed: 'spec',
  replicas: 2,
  updatedReplicas: 2,
  readyReplicas: available,
  availableReplicas: available,
  conditions: [condition('Available', available === 2 ? 'True' : 'False')],
  ...parts,
})
const merge = (parts: Partial<MergeInput>): Record<string, unknown> =>
  mergeDeploymentStatus({
    generation: 7,
    spec: 'spec',
    previous: {},
    pieces: {},
    states: {},
    now: '2026-01-01T00:00:00Z',
    ...parts,
  })

describe('the status of a Deployment in several members', () => {
  it("keeps the scheduler's condition beside those of members", () => {
    const placed = { ...condition('Placed', 'False'), message: 'there is no member cluster "mars"' }
    const status = merge({
      pieces: { east: piece(2) },
      states: { east: 'Serving' },
      previous: { conditions: [condition('Progressing', 'True'), placed] },
    })
    expect(status['conditions']).to.deep.equal([condition('Available', 'True'), placed])
  })
  it('sums counts', () => {
    const status = merge({ pieces: { east: piece(2), west: piece(1) }, states: { east: 'Serving', west: 'Serving' } })
    expect(status).to.include({ replicas: 4, updatedReplicas: 4, readyReplicas: 3, availableReplicas: 3 })
  })
  for (const { title, pieces, states, previous = {}, expected } of [
    {
      title: 'once every target has',
      pieces: { east: piece(2), west: piece(2) },
      states: { east: 'Serving', west: 'Applied' },
      expected: 7,
    },
    {
      title: 'not while one target has not',
      pieces: { east: piece(2), west: piece(2, { observed: 'old' }) },
      states: { east: 'Serving', west: 'Syncing' },
      expected: undefined,
    },
    {
      title: 'not while one target has said nothing',
      pieces: { east: piece(2) },
      states: { east: 'Serving', west: 'Syncing' },
      expected: undefined,
    },
    { title: 'not because there is no target', pieces: {}, states: {}, expected: undefined },
    {
      title: 'whatever a draining copy says',
      pieces: { east: piece(2, { observed: 'old' }), west: piece(2) },
      states: { east: 'Draining', west: 'Serving' },
      expected: 7,
    },
    {
      title: 'and never goes back',
      pieces: { east: piece(2, { observed: 'old' }) },
      states: { east: 'Serving' },
      previous: { observedGeneration: 6 },
      expected: 6,
    },
  ] as {
    title: string
    pieces: MergeInput['pieces']
    states: MergeInput['states']
    previous?: MergeInput['previous']
    expected?: number
  }[]) {
    it(`has observed the generation ${title}`, () =>
      expect(merge({ pieces, states, previous })['observedGeneration']).to.equal(expected))
  }
  it('is Available while a copy serves, though another is only coming', () => {
    const { conditions } = merge({
      pieces: { east: piece(2), west: piece(0) },
      states: { east: 'Serving', west: 'Applied' },
    })
    expect(conditions).to.deep.equal([condition('Available', 'True')])
  })
  it('is as bad as the worst of those that serve', () => {
    const { conditions } = merge({
      pieces: { east: piece(2), west: piece(0) },
      states: { east: 'Serving', west: 'Serving' },
    })
    expect(conditions).to.deep.equal([condition('Available', 'False')])
  })
  it('says what can’t be synced, in the member’s words', () => {
    const { conditions } = merge({ pieces: { east: { error: 'no such field' } }, states: { east: 'Syncing' } })
    expect(conditions).to.have.nested.property('[0].message', 'east: no such field')
  })
})
