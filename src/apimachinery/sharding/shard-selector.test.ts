// Compared with the answers of kube-apiserver's own code, recorded in test/vectors/shard-selector.json.
import { expect } from 'chai'
import { readFileSync } from 'node:fs'
import { hashOf, parseShardSelector, shardRange } from './index.ts'

interface Vectors {
  readonly hashes: readonly (readonly [value: string, hash: string])[]
  readonly selectors: readonly {
    readonly selector: string
    readonly text?: string
    /** A digit for each value of `hashes`: whether it matches. */
    readonly matches?: string
    readonly error?: string
  }[]
}

const file = new URL('../../../test/vectors/shard-selector.json', import.meta.url)
const { hashes, selectors } = JSON.parse(readFileSync(file, 'utf8')) as Vectors

function read(selector: string): { text?: string; matches?: string; error?: string } {
  try {
    const parsed = parseShardSelector(selector)
    return { text: parsed.text, matches: hashes.map(([value]) => (parsed.matches(value) ? '1' : '0')).join('') }
  } catch (error) {
    return { error: (error as Error).message.replace(/^invalid shard selector: /, '') }
  }
}

/** Without the names of Go's types and the tokens that the parser expects, which nobody reads. */
const withoutDetails = (error = ''): string =>
  error.replace(/(,? (got )?(expression kind|int64|\[\]uint8|expecting)| \().*| kind \d+/, '')

describe('shard selectors', () => {
  it('hash as upstream does', () => {
    for (const [value, hash] of hashes) {
      const { high, low } = hashOf(value)
      const hex = [high, low].map((half) => half.toString(16).padStart(8, '0')).join('')
      expect(hex, value).to.equal(hash)
    }
  })

  it('parse, match and refuse as upstream does', () => {
    for (const { selector, error, ...expected } of selectors) {
      const found = read(selector)
      if (error === undefined) expect(found, selector).to.deep.equal(expected)
      else expect(found.error, selector).to.be.a('string')
    }
  })

  it('say why they are refused in the words of upstream', () => {
    for (const { selector, error } of selectors)
      if (error !== undefined && !error.startsWith('CEL') && !error.startsWith('unexpected'))
        expect(withoutDetails(read(selector).error), selector).to.equal(withoutDetails(error))
  })

  it('divide a collection: each value is in one shard, whatever the number of shards', () => {
    for (const count of [1, 2, 3, 7, 100]) {
      const shards = Array.from({ length: count }, (_, index) =>
        parseShardSelector(shardRange('uid', { index, of: count })),
      )
      for (const [value] of hashes) expect(shards.filter((shard) => shard.matches(value))).to.have.length(1)
    }
    expect(() => shardRange('uid', { index: 2, of: 2 })).to.throw('there is no shard 2 of 2')
  })
})
