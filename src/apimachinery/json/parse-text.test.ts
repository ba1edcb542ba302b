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

  it('keeps integers of 64 bits exact, also through JSON.stringify', () => {
    const integer = fc.oneof(
      fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
      fc
        .tuple(fc.constantFrom(53n, 63n), fc.integer({ min: -3, max: 3 }), fc.constantFrom(1n, -1n))
        .map(([power, step, sign]) => BigInt.asIntN(64, sign * (2n ** power + BigInt(step)))),
    )
    const padding = fc.string({ maxLength: 40 })
    fc.assert(
      fc.property(fc.array(fc.tuple(padding, integer)), fc.constantFrom(undefined, 1), (items, indent) => {
        const text = JSON.stringify(
          items.map(([name, value]) => ({ [name]: [JSON.rawJSON(String(value))] })),
          null,
          indent,
        )
        const parsed = parseJsonText(text)
        expect(JSON.stringify(parsed, null, indent)).to.equal(text)
        expect((parsed as object[]).flatMap((item) => Object.values(item).flat().map(BigInt))).to.deep.equal(
          items.map(([, value]) => value),
        )
      }),
      { numRuns: 500 },
    )
  })

  it('makes bigints of integers beyond 2^53 only', () => {
    const text =
      '[9007199254740991,9007199254740992,9223372036854775807,9223372036854775808,1e18,1.5,-0,"9007199254740993"]'
    expect(parseJsonText(text)).to.deep.equal([
      ...[9007199254740991, 9007199254740992n, 9223372036854775807n, 2 ** 63, 1e18, 1.5, -0],
      '9007199254740993',
    ])
  })

  it('reads a long text of digits in linear time', () => {
    const digits = '7'.repeat(2_000_000)
    expect(parseJsonText(`["${digits}"]`)).to.deep.equal([digits])
    expect(parseJsonText(`[${digits}]`)).to.deep.equal([Infinity])
  })

  it('throws what JSON.parse throws', () => {
    expect(() => parseJsonText('{"\\n": }')).to.throw(SyntaxError)
  })
})
