import { expect } from 'chai'
import { Revisions } from './revisions.ts'

describe('the revisions of members', () => {
  const revisions = new Revisions()
  for (const { title, member = 'east', uid = 'u', revision, expected } of [
    { title: 'are unknown at first', revision: '900', expected: false },
    { title: 'may stay', revision: '900', expected: false },
    { title: 'grow, compared as numbers', revision: '1000', expected: false },
    { title: 'are those of each member', member: 'west', revision: '5', expected: false },
    { title: 'go back after a restore from a backup', revision: '950', expected: true },
    { title: 'which is told once', revision: '951', expected: false },
    { title: 'mean nothing if another cluster answers', uid: 'v', revision: '3', expected: false },
    { title: 'may be no numbers', uid: 'v', revision: 'abc', expected: false },
  ]) {
    it(title, () => expect(revisions.hasGoneBack(member, { uid, revision })).to.equal(expected))
  }
})
