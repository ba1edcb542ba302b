import { expect } from 'chai'
import { priorityClassIn } from './priority-class.ts'

const low = { name: 'low', value: 10 }
const calm = { name: 'calm', value: 500, preemptionPolicy: 'Never' }
const high = { name: 'high', value: 1000 }

describe('the PriorityClass of a member for one of a tenant', () => {
  for (const { title, classes, wanted, expected } of [
    {
      title: 'is the one with the same value',
      classes: [low, high],
      wanted: { name: 'mine', value: 1000 },
      expected: 'high',
    },
    { title: 'is the next lower one', classes: [low, high], wanted: { name: 'mine', value: 999 }, expected: 'low' },
    {
      title: 'is never a higher one of the same name',
      classes: [low, high],
      wanted: { name: 'high', value: 20 },
      expected: 'low',
    },
    {
      title: 'is none if all are higher',
      classes: [low, high],
      wanted: { name: 'mine', value: 5 },
      expected: undefined,
    },
    {
      title: 'does not preempt if that of the tenant does not',
      classes: [low, calm, high],
      wanted: { name: 'mine', value: 1000, preemptionPolicy: 'Never' },
      expected: 'calm',
    },
    {
      title: 'has the name of the tenant among equals',
      classes: [
        { name: 'a', value: 7 },
        { name: 'b', value: 7 },
      ],
      wanted: { name: 'b', value: 7 },
      expected: 'b',
    },
  ]) {
    it(title, () => expect(priorityClassIn(classes, wanted)).to.equal(expected))
  }
})
