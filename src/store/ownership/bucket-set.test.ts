import { expect } from 'chai'
import { bucketsFromText, bucketsToText } from './bucket-set.ts'

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
