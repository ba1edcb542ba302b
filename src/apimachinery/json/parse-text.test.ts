import { expect } from 'chai'
import fc from 'fast-check'
import { parseJsonText } from './parse-text.ts'

describe('parseJsonText', () => {
  it('keeps member names of one escape after a document with the member "\\"', () => {
    parseJsonText('{"x":1,"\\\\":2}')
    for (const name of ['\n', '"', '\\', '\ud800', 'A']) {
      const escaped = name === 'A' ? '\\u0041' : JSON.stringify(name).slice(1, -1)
      expect(parseJsonText(`{"x":1,"${escaped}":2}`)).to.deep.equal({ x: 1, [name]: 2 })
    }
  })

  it('agrees with the document it was written from', () => {
    const name = fc.oneof(fc.constantFrom('\\', '"', '\n', '\u0001', 'a\\', '__proto__', 'x'), fc.string())
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.oneof(fc.integer(), fc.boolean(), fc.constant(null), fc.string()),
        fc.array(tie('value'), { maxLength: 4 }),
        fc.array(fc.tuple(name, tie('value')), { maxLength: 4 }).map((members) => Object.fromEntries(members)),
      ),
    }))
    fc.assert(
      fc.property(value, fc.constantFrom(undefined, 2), (document, indent) => {
        expect(parseJsonText(JSON.stringify(document, null, indent))).to.deep.equal(document)
      }),
      { numRuns: 500 },
    )
  })

  it('throws what JSON.parse throws', () => {
    expect(() => parseJsonText('{"\\n": }')).to.throw(SyntaxError)
  })
})
