import { expect } from 'chai'
import fc from 'fast-check'
import {
  everything,
  nothing,
  parseFieldSelector,
  parseLabelSelector,
  requireMetadataFields,
  requireSupportedFields,
  selectorFromObject,
  type Labels,
} from './index.ts'

describe('label selector', () => {
  const labels: Labels = { a: 'b', c: 'x', e: 'y', f: 'q', k: '5', empty: '' }
  const matches: [string, boolean, string?][] = [
    ['', true],
    ['a=b', true],
    ['a==b', true],
    ['a=c', false],
    ['c!=d', true],
    ['nope!=d', true],
    ['e in (x,y)', true, 'e in (x,y)'],
    ['e in (z)', false],
    ['nope in (z)', false],
    ['f notin (z)', true],
    ['nope notin (z)', true],
    ['f notin (z,q)', false, 'f notin (q,z)'],
    ['a', true],
    ['!a', false],
    ['!g', true],
    ['k>1', true],
    ['k<1', false],
    ['k > 5', false, 'k>5'],
    ['a>1', false],
    ['empty=', true, 'empty='],
    ['empty in ()', true, 'empty in ()'],
    ['empty in (,z)', true, 'empty in (,z)'],
    ['in in (in, notin)', false, 'in in (in,notin)'],
    ['constructor', false],
    ['constructor in (x)', false],
    ['constructor!=x', true],
    [' a = b , ! g ', true, 'a=b,!g'],
    ['x.io/y notin (z),a', true, 'a,x.io/y notin (z)'],
  ]
  for (const [text, expected, printed = text] of matches) {
    it(`"${text}" ${expected ? 'matches' : 'does not match'}`, () => {
      const selector = parseLabelSelector(text)
      expect(selector.matches(labels)).to.equal(expected)
      expect(selector.toString()).to.equal(printed)
      expect(parseLabelSelector(printed).matches(labels)).to.equal(expected)
    })
  }

  it('matches an object without labels', () => {
    expect(parseLabelSelector('!a,b!=c').matches(undefined)).to.equal(true)
    expect(parseLabelSelector('a').matches(undefined)).to.equal(false)
  })

  const name =
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
  for (const [text, error] of [
    ['a=b c', "found 'c', expected: ',' or 'end of string'"],
    ['a,', "found '', expected: identifier after ','"],
    [',a', "found ',', expected: !, identifier, or 'end of string'"],
    ['=b', "found '=', expected: !, identifier, or 'end of string'"],
    ['a in b', "unable to parse requirement: found 'b' expected: '('"],
    ['a in (b', "unable to parse requirement: found '', expected: ',' or ')'"],
    ['a b', "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"],
    ['!', "unable to parse requirement: found '', expected: identifier"],
    ['a==(', "unable to parse requirement: found '(', expected: identifier"],
    ['-a', `unable to parse requirement: <nil>: Invalid value: "-a": ${name}`],
    [
      'a>x',
      `unable to parse requirement: values[0]: Invalid value: "x": for 'Gt', 'Lt' operators, the value must be an integer`,
    ],
    [
      'a in (-)',
      'unable to parse requirement: values[0][a]: Invalid value: "-": a valid label must be an empty string or',
    ],
    [`a=${'x'.repeat(64)}`, `must be no more than 63 characters`],
  ] as const) {
    it(`refuses "${text.slice(0, 20)}"`, () => expect(() => parseLabelSelector(text)).to.throw(error))
  }

  it('compiles from the selector of an object', () => {
    expect(selectorFromObject(undefined)).to.equal(nothing)
    expect(selectorFromObject({})).to.equal(everything)
    const selector = selectorFromObject({
      matchLabels: { z: '1' },
      matchExpressions: [
        { key: 'b', operator: 'In', values: ['x', 'a'] },
        { key: 'a', operator: 'DoesNotExist' },
      ],
    })
    expect(selector.toString()).to.equal('!a,b in (a,x),z=1')
    expect(() => selectorFromObject({ matchExpressions: [{ key: 'a', operator: 'Like' }] })).to.throw(
      '"Like" is not a valid label selector operator',
    )
  })

  it('made of the labels of an object matches that object', () => {
    const word = fc.stringMatching(/^[a-z]([a-z0-9]{0,8}[a-z0-9])?$/)
    fc.assert(
      fc.property(fc.dictionary(word, word), fc.dictionary(word, word), (own, more) => {
        const selector = selectorFromObject({ matchLabels: own })
        expect(selector.matches({ ...more, ...own })).to.equal(true)
        expect(parseLabelSelector(selector.toString()).toString()).to.equal(selector.toString())
      }),
    )
  })

  it('throws nothing but BadRequest', () => {
    const piece = fc.constantFrom('a', 'in', 'notin', '(', ')', ',', '=', '!', '==', '!=', ' ', '>', '\0', '"', 'é')
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        try {
          const selector = parseLabelSelector(pieces.join(''))
          expect(parseLabelSelector(selector.toString()).toString()).to.equal(selector.toString())
        } catch (error) {
          expect(error).to.have.property('reason', 'BadRequest')
        }
      }),
      { numRuns: 3000 },
    )
  })
})

describe('field selector', () => {
  const get = (field: string): string | undefined => ({ 'metadata.name': 'web', odd: 'a,b=c\\' })[field]
  for (const [text, expected] of [
    ['', true],
    ['metadata.name=web', true],
    ['metadata.name==web', true],
    ['metadata.name!=web', false],
    ['spec.nodeName=', true],
    ['spec.nodeName!=', false],
    ['odd=a\\,b\\=c\\\\', true],
    ['metadata.name=web,spec.nodeName=x', false],
  ] as const) {
    it(`"${text}" ${expected ? 'matches' : 'does not match'}`, () => {
      const selector = parseFieldSelector(text)
      expect(selector.matches(get)).to.equal(expected)
      expect(parseFieldSelector(selector.toString()).requirements).to.deep.equal(selector.requirements)
    })
  }
  for (const [text, error] of [
    ['metadata.name', "invalid selector: 'metadata.name'; can't understand 'metadata.name'"],
    ['a=b\\c', 'invalid field selector: invalid escape sequence: \\c'],
    ['a=b=c', 'invalid field selector: unescaped character in value: 61'],
  ] as const) {
    it(`refuses "${text}"`, () => expect(() => parseFieldSelector(text)).to.throw(error))
  }
  it('gives the value it requires of a field', () => {
    const selector = parseFieldSelector('metadata.name=web,spec.x!=y')
    expect(selector.exactly('metadata.name')).to.equal('web')
    expect(selector.exactly('spec.x')).to.equal(undefined)
  })
  it('is refused for fields that a resource does not support', () => {
    const selector = parseFieldSelector('spec.x=y')
    expect(() => {
      requireSupportedFields(selector, new Set())
    }).to.throw('field label not supported: spec.x')
    expect(() => {
      requireMetadataFields(selector)
    }).to.throw('"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"')
  })
})

describe('a selector with many requirements', () => {
  const many = Array.from({ length: 100 }, (_, i) => `!absent-${i}`).join(',')
  for (const [requirement, labels, isMatch] of [
    ['a=b', { a: 'b' }, true],
    ['a=b', { a: 'c' }, false],
    ['a!=b', {}, true],
    ['a!=b', { a: 'b' }, false],
    ['a in (b,c)', { a: 'c' }, true],
    ['a in (b,c)', {}, false],
    ['constructor in (b,c)', {}, false],
    ['a in (b,c,d,e,f,g,h,i,j)', { a: 'j' }, true],
    ['a in (b,c,d,e,f,g,h,i,j)', { a: 'k' }, false],
    ['a notin (b,c)', { a: 'c' }, false],
    ['a notin (b,c)', {}, true],
    ['a', { a: '' }, true],
    ['toString', {}, false],
    ['!a', { a: '' }, false],
    ['a>1', { a: '2' }, true],
    ['a<1', { a: '2' }, false],
  ] as const)
    it(`matches as one with few: ${requirement} and ${JSON.stringify(labels)}`, () => {
      expect(parseLabelSelector(requirement).matches(labels)).to.equal(isMatch)
      expect(parseLabelSelector(`${many},${requirement}`).matches(labels)).to.equal(isMatch)
      expect(parseLabelSelector(`${many},${requirement}`).matches({ ...labels, 'absent-7': '' })).to.equal(false)
    })
})
