import { expect } from 'chai'
import { contentHash, unchangingHash } from './content-hash.ts'

describe('the hash of a value that does not change', () => {
  it('is its content hash, and reads the value once', () => {
    let reads = 0
    const value = {
      get replicas() {
        reads++
        return 3
      },
    }
    const expected = contentHash({ replicas: 3 })
    expect([unchangingHash(value), unchangingHash(value), unchangingHash({ replicas: 3 })]).to.deep.equal([
      expected,
      expected,
      expected,
    ])
    expect(reads).to.equal(1)
    expect(unchangingHash('text')).to.equal(contentHash('text'))
  })
})
