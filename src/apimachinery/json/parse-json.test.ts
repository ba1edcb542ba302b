import { expect } from 'chai'
import fc from 'fast-check'
import { integerOfText, type JsonValue } from '#apimachinery/meta/index.ts'
import { NumberLiteral, parseLiterals } from './number-literal.ts'
import { parseJson, type JsonLimits, type ParsedJson } from './parse-json.ts'

const parse = (text: string, limits?: JsonLimits): ParsedJson => parseJson(Buffer.from(text), limits)

function exact(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  const source = context?.source ?? ''
  return typeof value === 'number' && /^-?\d+$/.test(source) ? integerOfText(source) : value
}

describe('parseJson', () => {
  for (const [text, duplicates] of [
    ['{"a":1,"a":2}', ['a']],
    ['{"spec":{"x":1,"y":{"x":1},"x":2}}', ['spec.x']],
    ['{"c":[{"n":1},{"n":1,"n":2,"n":3}]}', ['c[1].n']],
    ['[[{"a":{"b":1,"b":2}}]]', ['[0][0].a.b']],
    ['{"a":"x:y\\"","b":"\\\\","a:":1}', []],
    ['{"\\u0061":1,"a":2}', ['a']],
    ['{"__proto__":{"x":1},"__proto__":2}', ['__proto__']],
    ['{"a":{"b":1},"a":{"c":1}}', ['a']],
  ] as const) {
    it(`names the duplicates of ${text}`, () => {
      const { value, duplicateFields } = parse(text)
      expect(duplicateFields).to.deep.equal(duplicates.map((path) => `duplicate field "${path}"`))
      expect(value).to.deep.equal(JSON.parse(text))
    })
  }

  for (const [text, error] of [
    ['', 'unexpected end of JSON input'],
    ['{', 'unexpected end of JSON input'],
    ['{"a"', 'unexpected end of JSON input'],
    ['{"a":1,}', "invalid character '}' looking for beginning of object key string"],
    ['{a:1}', "invalid character 'a' looking for beginning of object key string"],
    ['{"a" 1}', "invalid character '1' after object key"],
    ['{"a":1 "b"}', `invalid character '"' after object key:value pair`],
    ['[1 2]', "invalid character '2' after array element"],
    ['[1,]', "invalid character ']' looking for beginning of value"],
    ['{} x', "invalid character 'x' after top-level value"],
    ['nul', 'unexpected end of JSON input'],
    ['nulx', "invalid character 'x' in literal null (expecting 'l')"],
    ['"a\nb"', "invalid character '\\n' in string literal"],
    ['"\\q"', "invalid character 'q' in string escape code"],
    ['01', "invalid character '1' after top-level value"],
    ['1.x', "invalid character 'x' after decimal point in numeric literal"],
    ['-', 'unexpected end of JSON input'],
  ] as const) {
    it(`explains the syntax error in ${JSON.stringify(text)}`, () => {
      expect(() => parse(text))
        .to.throw(error)
        .with.property('reason', 'BadRequest')
    })
  }

  it('bounds depth and size', () => {
    expect(parse('['.repeat(20) + ']'.repeat(20), { maxDepth: 20 }).duplicateFields).to.deep.equal([])
    expect(() => parse('['.repeat(1_000_000)))
      .to.throw('exceeded max depth')
      .with.property('code', 400)
    expect(() => parse(`{"a":${'['.repeat(1001)}${']'.repeat(1001)}}`)).to.throw('exceeded max depth')
    expect(() => parse('"aaaa"', { maxBytes: 3 }))
      .to.throw('limit is 3')
      .with.property('code', 413)
  })

  it('bounds the number of values of any type', () => {
    const many = (item: string) => Array.from({ length: 1000 }, () => item).join()
    for (const text of [`[${many('1')}]`, `[${many('[]')}]`, `[${many('{"a":1}')}]`, `[${many('[[[]]]')}]`]) {
      expect(() => parse(text, { maxValues: 999 }), text.slice(0, 20))
        .to.throw('limit is 999 values')
        .with.property('code', 413)
      expect(parse(text, { maxValues: 4001 }).value).to.have.length(1000)
    }
  })

  for (const [number, odd] of [
    ['999999999999999', false],
    ['-5', false],
    ['9223372036854775807', true],
    ['"9223372036854775807"', false],
    ['"1.5e2"', false],
    ['[true,false,null,0]', false],
    ['1.0', true],
    ['[1e2]', true],
    ['1E2', true],
  ] as const)
    it(`reports a number that is not a plain integer: ${number}`, () =>
      expect(parse(`{"a":${number}}`).oddNumbers).to.equal(odd))

  it('keeps the text of numbers', () => {
    const bytes = Buffer.from('{"a":[1,1.0,{"b":9223372036854775808}],"c":"1.0","d":0.5}')
    const literal = (text: string): NumberLiteral => new NumberLiteral(text)
    expect(parseLiterals(bytes)).to.deep.equal({
      a: [1, literal('1.0'), { b: literal('9223372036854775808') }],
      c: '1.0',
      d: literal('0.5'),
    })
  })

  it('reports at most 100 duplicates', () => {
    const { duplicateFields } = parse(
      `{${Array.from({ length: 90_000 }, (_, i) => `"k${String(i % 45_000)}":1`).join()}}`,
    )
    expect(duplicateFields).to.have.length(100)
  })

  it('gives the result of JSON.parse for every document, with any whitespace', () => {
    fc.assert(
      fc.property(fc.json(), fc.constantFrom(undefined, 1, '\t'), (text, space) => {
        const spaced = JSON.stringify(JSON.parse(text), undefined, space)
        expect(parse(spaced)).to.deep.include({ value: JSON.parse(spaced, exact) as JsonValue, duplicateFields: [] })
      }),
    )
  })

  it('refuses what JSON.parse refuses, and explains it', () => {
    const piece = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"',
      'a',
      '"a"',
      '1',
      '-',
      '.',
      'e',
      'true',
      'null',
      '\\',
      ' ',
    )
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const text = pieces.join('')
        let valid = true
        try {
          JSON.parse(text)
        } catch {
          valid = false
        }
        if (valid) parse(text)
        else expect(() => parse(text)).to.throw(/^(unexpected end of JSON input|invalid character .*)$/s)
      }),
      { numRuns: 3000 },
    )
  })
})
