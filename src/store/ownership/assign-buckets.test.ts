import { expect } from 'chai'
import { randomBytes } from 'node:crypto'
import { assignBuckets, bucketCount, bucketsFromText, bucketsToText } from './assign-buckets.ts'

const rounds = 60
const freshName = (): string => `kcp-apiserver-${randomBytes(5).toString('hex')}`
const namesOf = (count: number): string[] => Array.from({ length: count }, freshName)
const countOf = (owners: readonly string[], name: string): number => owners.filter((owner) => owner === name).length
const moved = (a: readonly string[], b: readonly string[]): number => a.filter((owner, i) => owner !== b[i]).length

describe('the assignment of buckets to replicas', () => {
  it('gives one replica everything, and nobody anything without replicas', () => {
    expect(countOf(assignBuckets(['a']), 'a')).to.equal(bucketCount)
    expect(assignBuckets([])).to.deep.equal([])
  })

  it('depends on the set of names alone', () => {
    const names = namesOf(5)
    expect(assignBuckets([...names.toReversed(), ...names])).to.deep.equal(assignBuckets(names))
  })

  it('spreads all buckets over three replicas so that the largest share is at most 1.3 times the smallest', () => {
    for (let round = 0; round < rounds; round++) {
      const names = namesOf(3)
      const owners = assignBuckets(names)
      const counts = names.map((name) => countOf(owners, name))
      expect(counts.reduce((sum, count) => sum + count)).to.equal(bucketCount)
      expect(Math.max(...counts) / Math.min(...counts), names.join()).to.be.at.most(1.3)
    }
  })

  it('moves little more than the share of a replica that joins or leaves', () => {
    const joined: number[] = []
    const left: number[] = []
    for (let round = 0; round < rounds; round++) {
      const names = namesOf(2 + (round % 5))
      const before = assignBuckets(names)
      joined.push(moved(before, assignBuckets([...names, freshName()])) / (bucketCount / (names.length + 1)))
      left.push(moved(before, assignBuckets(names.slice(1))) / countOf(before, names[0] ?? ''))
    }
    expect(Math.max(...joined), 'joining').to.be.at.most(1.7)
    expect(Math.max(...left), 'leaving').to.be.at.most(1.6)
  })
})

describe('buckets in a Lease', () => {
  for (const { title, buckets, text } of [
    { title: 'none', buckets: [], text: '0'.repeat(64) },
    { title: 'the first and the last', buckets: [0, 255], text: `8${'0'.repeat(62)}1` },
    { title: 'some in one byte', buckets: [8, 10, 15], text: `00a1${'0'.repeat(60)}` },
  ]) {
    it(`are written as bits: ${title}`, () => {
      expect(bucketsToText(new Set(buckets))).to.equal(text)
      expect([...bucketsFromText(text)]).to.deep.equal(buckets)
    })
  }

  it('are all of them if the text is damaged, so that nobody takes what may be owned', () => {
    for (const text of ['', '8', 'x'.repeat(64), 'f'.repeat(63)]) expect(bucketsFromText(text).size, text).to.equal(256)
  })
})
