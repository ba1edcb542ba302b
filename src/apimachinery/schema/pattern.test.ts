import { expect } from 'chai'
import { RE2JS } from 're2js'
import { estimatePatternSize } from './pattern-size.ts'
import { compilePattern } from './pattern.ts'

const small = [
  '^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$',
  '^[a-z0-9]([-a-z0-9]{0,251}[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$',
  '(?:abc\\Q)\\E def){100}',
  '([])a]{10}b){90}',
  '([[:alpha:])]a{5}){100}',
  '[\\]a]{50}(abc|def){3,}x*y+?z??',
  '(?i)\\p{L}{100}',
  '\\PN[^]\\pL]{7,}',
]

describe('compilePattern', () => {
  for (const pattern of small)
    it(`estimates the size of ${pattern} from above, and compiles it`, () => {
      const compiled = RE2JS.compile(pattern).programSize()
      expect(estimatePatternSize(pattern)).to.be.within(compiled - 2, 8 * compiled)
      expect(compilePattern(pattern)).to.have.property('size', compiled)
    })

  for (const { title, pattern } of [
    { title: 'text of 200 kB', pattern: '(a|b)'.repeat(40_000) },
    { title: 'repetition of a short text', pattern: `(${'abcdefghij'.repeat(20)}){1000}` },
    { title: 'class of a million characters', pattern: `[${'a-b'.repeat(333_333)}]` },
    { title: 'text of 200,000 opened groups', pattern: '('.repeat(200_000) },
  ])
    it(`refuses a ${title} without compiling it`, () => {
      const before = process.cpuUsage()
      expect(compilePattern(pattern)).to.deep.equal({ error: 'error parsing regexp: expression too large' })
      const { user, system } = process.cpuUsage(before)
      expect((user + system) / 1e6, 'seconds').to.be.lessThan(1)
    })
})
