import { expect } from 'chai'
import { isSubset } from './is-subset.ts'

describe('isSubset', () => {
  for (const { title, actual, wanted, is } of [
    {
      title: 'accepts more fields at every level',
      actual: { a: { b: 1, c: 2 }, d: 3 },
      wanted: { a: { b: 1 } },
      is: true,
    },
    { title: 'refuses another value', actual: { a: 1 }, wanted: { a: 2 }, is: false },
    { title: 'refuses a missing field', actual: {}, wanted: { a: 1 }, is: false },
    { title: 'refuses a longer list', actual: { a: [1, 2] }, wanted: { a: [1] }, is: false },
    { title: 'compares items of lists as subsets', actual: [{ a: 1, b: 2 }], wanted: [{ a: 1 }], is: true },
    { title: 'treats an empty object as absent', actual: { a: undefined }, wanted: { a: {} }, is: true },
  ]) {
    it(title, () => expect(isSubset(actual, wanted)).to.equal(is))
  }
})
