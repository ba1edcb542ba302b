import { expect } from 'chai'
import { newOrdinals } from './claims-with-data.ts'

describe('the ordinals that a member is to make pods of', () => {
  for (const { title, ordinals, had, expected } of [
    { title: 'are all without a copy', ordinals: [2, 5], had: [2, 2], expected: [2, 3, 4] },
    { title: 'are those beside its copy', ordinals: [3, 8], had: [4, 6], expected: [3, 6, 7] },
    { title: 'are the last ones of a large copy', ordinals: [0, 201], had: [0, 200], expected: [200] },
    { title: 'are none if it shrinks', ordinals: [3, 5], had: [0, 9], expected: [] },
    { title: 'are all far from its copy', ordinals: [0, 2], had: [10, 12], expected: [1, 0] },
  ] as const)
    it(title, () => {
      const [[start, end], [from, to]] = [ordinals, had]
      expect([...newOrdinals({ start, end }, { start: from, end: to })]).to.deep.equal(expected)
    })

  it('are bounded', () => {
    expect([...newOrdinals({ start: 0, end: 9999 }, { start: 5000, end: 5001 })]).to.have.length(64)
  })
})
