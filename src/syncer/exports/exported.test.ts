import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isHealthy, statusUp } from './exported-status.ts'

describe('the status of a custom resource in a member', () => {
  const object = (generation: number, status = {}): KubeObject => ({
    apiVersion: 'example.com/v1',
    kind: 'Widget',
    metadata: { name: 'w', generation },
    status,
  })
  const condition = (observedGeneration: number) => ({ type: 'Ready', status: 'True', observedGeneration })
  const live = object(7, { observedGeneration: 7, conditions: [condition(6)], size: 3 })

  it('names generations of the upstream object', () => {
    const seen = { observedGeneration: 2, conditions: [condition(1)], size: 3 }
    expect(statusUp(live, object(2), true)).to.deep.equal(seen)
    expect(live['status']).to.deep.equal({ observedGeneration: 7, conditions: [condition(6)], size: 3 })
  })

  it('has not observed a change that is not in the member yet', () => {
    expect(statusUp(live, object(2), false)).to.include({ observedGeneration: 1 })
  })

  for (const { title, status, before = {}, healthy } of [
    { title: 'without a status', status: {}, healthy: true },
    { title: 'that its controller has not seen', status: { observedGeneration: 6 }, healthy: false },
    { title: 'whose condition Ready is True', status: { conditions: [condition(7)] }, healthy: true },
    { title: 'whose condition Ready is of before', status: { conditions: [condition(6)] }, healthy: false },
    {
      title: 'that is not Available',
      status: { conditions: [{ type: 'Available', status: 'False' }] },
      healthy: false,
    },
    { title: 'that is Stalled', status: { conditions: [{ type: 'Stalled', status: 'True' }] }, healthy: false },
    {
      title: 'without the condition that it had in another member',
      ...{ status: {}, before: { conditions: [condition(1)] }, healthy: false },
    },
  ])
    it(`finds a copy ${title} ${healthy ? 'well' : 'not well'}`, () =>
      expect(isHealthy(object(7, status), object(2, before))).to.equal(healthy))
})
