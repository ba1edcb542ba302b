import { expect } from 'chai'
import fc from 'fast-check'
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import { compareSchemas, parseStructuralSchema, pruneUnknown, validate } from './index.ts'

const compared = (before: JsonObject, after: JsonObject): string[] =>
  compareSchemas(parseStructuralSchema(before), parseStructuralSchema(after)).map(
    ({ path, harm, what }) => `${path} ${harm}: ${what}`,
  )
const spec = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({
  type: 'object',
  properties: { spec: { type: 'object', properties, ...more } },
})
const string = { type: 'string' }

describe('the comparison of two schemas', () => {
  it('finds nothing where the second accepts more', () => {
    const before = spec({
      a: { type: 'integer', minimum: 2 },
      b: { ...string, enum: ['x'] },
      c: { ...string, maxLength: 3 },
    })
    const after = spec({
      a: { type: 'number', minimum: 1 },
      b: { ...string, enum: ['x', 'y'] },
      c: { ...string, maxLength: 4, nullable: true },
      d: string,
    })
    expect(compared(before, after)).to.deep.equal([])
  })

  for (const { title, before, after, expected } of [
    {
      title: 'a field that is gone',
      before: { a: string },
      after: {},
      expected: '.spec.a dropped: does not exist any more',
    },
    {
      title: 'another type',
      before: { a: string },
      after: { a: { type: 'integer' } },
      expected: '.spec.a refused: takes no string any more',
    },
    {
      title: 'one of two types',
      before: { a: { 'x-kubernetes-int-or-string': true } },
      after: { a: { type: 'integer' } },
      expected: '.spec.a refused: takes no string any more',
    },
    {
      title: 'null',
      before: { a: { ...string, nullable: true } },
      after: { a: string },
      expected: '.spec.a refused: takes no null any more',
    },
    {
      title: 'a longer minimum',
      before: { a: string },
      after: { a: { ...string, minLength: 2 } },
      expected: '.spec.a refused: must have at least 2 characters',
    },
    {
      title: 'a pattern',
      before: { a: string },
      after: { a: { ...string, pattern: '^x' } },
      expected: '.spec.a refused: must match ^x',
    },
    {
      title: 'a format',
      before: { a: string },
      after: { a: { ...string, format: 'ipv4' } },
      expected: '.spec.a refused: must have format ipv4',
    },
    {
      title: 'fewer values',
      before: { a: { ...string, enum: ['x', 'y'] } },
      after: { a: { ...string, enum: ['x'] } },
      expected: '.spec.a refused: takes "y" no more',
    },
    {
      title: 'unique items',
      before: { a: { type: 'array', items: string } },
      after: { a: { type: 'array', items: string, 'x-kubernetes-list-type': 'set' } },
      expected: '.spec.a refused: must have no item twice',
    },
    {
      title: 'an item of a list',
      before: { a: { type: 'array', items: { type: 'object', properties: { b: string } } } },
      after: { a: { type: 'array', items: { type: 'object' } } },
      expected: '.spec.a[].b dropped: does not exist any more',
    },
    {
      title: 'the values of a map',
      before: { a: { type: 'object', additionalProperties: string } },
      after: { a: { type: 'object', additionalProperties: { ...string, maxLength: 1 } } },
      expected: '.spec.a.* refused: must have at most 1 characters',
    },
    {
      title: 'unknown fields',
      before: { a: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      after: { a: { type: 'object' } },
      expected: '.spec.a dropped: keeps no unknown fields any more',
    },
    {
      title: 'a rule',
      before: { a: string },
      after: { a: { ...string, 'x-kubernetes-validations': [{ rule: "self != 'x'" }] } },
      expected: ".spec.a refused: has another rule: self != 'x'",
    },
    {
      title: 'a default',
      before: { a: string },
      after: { a: { ...string, default: 'x' } },
      expected: '.spec.a changed: has a default: "x"',
    },
  ])
    it(`finds ${title}`, () => {
      expect(compared(spec(before), spec(after))).to.deep.equal([expected])
    })

  it('finds a field that is required, unless it has a default', () => {
    expect(compared(spec({ a: string }), spec({ a: string }, { required: ['a'] }))).to.deep.equal([
      '.spec.a refused: is required',
    ])
    const after = spec({ a: { ...string, default: 'x' } }, { required: ['a'] })
    expect(compared(spec({ a: string }), after)).to.deep.equal(['.spec.a changed: has a default: "x"'])
  })

  const leaf = fc.oneof(
    fc.record(
      {
        type: fc.constant('integer'),
        minimum: fc.integer({ min: 0, max: 4 }),
        maximum: fc.integer({ min: 3, max: 6 }),
      },
      { requiredKeys: ['type'] },
    ),
    fc.record(
      {
        type: fc.constant('string'),
        maxLength: fc.integer({ min: 0, max: 3 }),
        minLength: fc.integer({ min: 0, max: 2 }),
        nullable: fc.boolean(),
        enum: fc.uniqueArray(fc.constantFrom('', 'a', 'b', 'ab'), { minLength: 1 }),
      },
      { requiredKeys: ['type'] },
    ),
    fc.constant({ 'x-kubernetes-int-or-string': true }),
  )
  const schemas = fc.letrec<{ node: JsonObject }>((tie) => ({
    node: fc.oneof(
      { maxDepth: 3 },
      leaf as fc.Arbitrary<JsonObject>,
      fc
        .record(
          {
            type: fc.constant('object'),
            properties: fc.dictionary(fc.constantFrom('p', 'q'), tie('node'), { maxKeys: 2 }),
            required: fc.subarray(['p', 'q'], { minLength: 1 }),
            'x-kubernetes-preserve-unknown-fields': fc.boolean(),
          },
          { requiredKeys: ['type'] },
        )
        .map((node) => node as JsonObject),
      fc.record({ type: fc.constant('object'), additionalProperties: tie('node') }).map((node) => node as JsonObject),
      fc
        .record(
          {
            type: fc.constant('array'),
            items: tie('node'),
            maxItems: fc.integer({ min: 0, max: 2 }),
            'x-kubernetes-list-type': fc.constantFrom('set', 'atomic'),
          },
          { requiredKeys: ['type', 'items'] },
        )
        .map((node) => node as JsonObject),
    ),
  })).node
  const values = fc.letrec<{ value: JsonValue }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom<JsonValue>('', 'a', 'ab', 0, 1, 4, null, true, 2.5),
      fc.dictionary(fc.constantFrom('p', 'q', 'r'), tie('value'), { maxKeys: 3 }),
      fc.array(tie('value'), { maxLength: 3 }),
    ),
  })).value

  it('is sound: without a difference, each value that the first accepts is valid and whole under the second', () => {
    let checked = 0
    fc.assert(
      fc.property(
        schemas,
        schemas,
        fc.array(values, { minLength: 20, maxLength: 20 }),
        fc.boolean(),
        (a, b, all, isNear) => {
          // Two unrelated schemas rarely have no difference, so half of the pairs differ in one member only.
          const near = isNear ? { ...a, ...Object.fromEntries(Object.entries(b).slice(1, 2)) } : b
          const [before, after] = [
            parseStructuralSchema({ type: 'object', properties: { v: a } }),
            parseStructuralSchema({ type: 'object', properties: { v: near } }),
          ]
          if (compareSchemas(before, after).length > 0) return
          for (const v of all) {
            const object: JsonObject = { v: structuredClone(v) }
            pruneUnknown(object, before, { isResourceRoot: false })
            if (validate(object, before).length > 0) continue
            checked++
            const whole = JSON.stringify(object)
            expect(validate(object, after), `${whole} under ${JSON.stringify(near)}`).to.deep.equal([])
            pruneUnknown(object, after, { isResourceRoot: false })
            expect(JSON.stringify(object), JSON.stringify(near)).to.equal(whole)
          }
        },
      ),
      { numRuns: 3000 },
    )
    expect(checked).to.be.greaterThan(1000)
  })
})
