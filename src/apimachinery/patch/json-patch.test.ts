import { expect } from 'chai'
import fc from 'fast-check'
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import { isStatusError, type StatusError } from '#apimachinery/status/index.ts'
import { applyJsonPatch, maxJsonPatchOperations } from './json-patch.ts'

function failure(run: () => unknown): StatusError {
  try {
    run()
  } catch (error) {
    if (isStatusError(error)) return error
    throw error
  }
  throw new Error('expected a failure')
}

describe('JSON patch', () => {
  const doc = { a: { b: [1, 2, 3] }, 'x/y': 1, 'm~n': null, s: 'text' }
  const cases: { title: string; patch: JsonValue; result: JsonValue; from?: JsonValue }[] = [
    { title: 'adds a field', patch: [{ op: 'add', path: '/n', value: 1 }], result: { ...doc, n: 1 } },
    {
      title: 'inserts into a list',
      patch: [{ op: 'add', path: '/a/b/1', value: 9 }],
      result: { ...doc, a: { b: [1, 9, 2, 3] } },
    },
    {
      title: 'appends with -',
      patch: [{ op: 'add', path: '/a/b/-', value: 9 }],
      result: { ...doc, a: { b: [1, 2, 3, 9] } },
    },
    {
      title: 'appends with -1',
      patch: [{ op: 'add', path: '/a/b/-1', value: 9 }],
      result: { ...doc, a: { b: [1, 2, 3, 9] } },
    },
    {
      title: 'removes from the end with -1',
      patch: [{ op: 'remove', path: '/a/b/-1' }],
      result: { ...doc, a: { b: [1, 2] } },
    },
    { title: 'unescapes ~1', patch: [{ op: 'replace', path: '/x~1y', value: 2 }], result: { ...doc, 'x/y': 2 } },
    { title: 'unescapes ~0', patch: [{ op: 'replace', path: '/m~0n', value: 2 }], result: { ...doc, 'm~n': 2 } },
    { title: 'replaces an absent field', patch: [{ op: 'replace', path: '/q', value: 2 }], result: { ...doc, q: 2 } },
    { title: 'replaces the document', patch: [{ op: 'replace', path: '', value: { z: 1 } }], result: { z: 1 } },
    {
      title: 'moves',
      patch: [{ op: 'move', from: '/s', path: '/t' }],
      result: { a: doc.a, 'x/y': 1, 'm~n': null, t: 'text' },
    },
    {
      title: 'copies',
      patch: [
        { op: 'copy', from: '/a', path: '/c' },
        { op: 'remove', path: '/a/b/0' },
      ],
      result: { ...doc, a: { b: [2, 3] }, c: { b: [1, 2, 3] } },
    },
    { title: 'tests', patch: [{ op: 'test', path: '/a', value: { b: [1, 2, 3] } }], result: doc },
    { title: 'tests an absent field for null', patch: [{ op: 'test', path: '/zz', value: null }], result: doc },
    { title: 'tests the document', patch: [{ op: 'test', path: '', value: doc }], result: doc },
    { title: 'reads a missing value as null', patch: [{ op: 'add', path: '/n' }], result: { ...doc, n: null } },
    {
      title: 'keeps __proto__ a plain key',
      patch: [{ op: 'add', path: '/__proto__', value: { x: 1 } }],
      result: JSON.parse('{"__proto__":{"x":1}}') as JsonValue,
      from: {},
    },
  ]
  for (const { title, patch, result, from = doc } of cases) {
    it(title, () => {
      const before = JSON.stringify([from, patch])
      expect(JSON.stringify(sorted(applyJsonPatch(from, patch)))).to.equal(JSON.stringify(sorted(result)))
      expect(JSON.stringify([from, patch])).to.equal(before)
    })
  }

  const message = 'the server rejected our request due to an error in our request'
  const refused: { title: string; patch: JsonValue; code: number; why: string }[] = [
    {
      title: 'removal of an absent field',
      patch: [{ op: 'remove', path: '/zz' }],
      code: 422,
      why: "error in remove for path: '/zz': Unable to remove nonexistent key: zz: missing value",
    },
    {
      title: 'a path through an absent field',
      patch: [{ op: 'add', path: '/zz/y', value: 1 }],
      code: 422,
      why: 'add operation does not apply: doc is missing path: "/zz/y": missing value',
    },
    {
      title: 'a path without slash',
      patch: [{ op: 'add', path: 'zz', value: 1 }],
      code: 422,
      why: 'add operation does not apply: doc is missing path: "zz": missing value',
    },
    {
      title: 'an index beyond the end',
      patch: [{ op: 'add', path: '/a/b/5', value: 1 }],
      code: 422,
      why: "error in add for path: '/a/b/5': Unable to access invalid index: 5: invalid index referenced",
    },
    {
      title: 'a failed test',
      patch: [{ op: 'test', path: '/s', value: 'x' }],
      code: 422,
      why: 'testing value /s failed: test failed',
    },
    {
      title: 'an unknown operation',
      patch: [{ op: 'explode', path: '/s' }],
      code: 422,
      why: 'Unexpected kind: explode',
    },
    {
      title: 'a path through text',
      patch: [{ op: 'add', path: '/s/x', value: 1 }],
      code: 422,
      why: 'add operation does not apply: doc is missing path: "/s/x": missing value',
    },
    {
      title: 'a path through an inherited property',
      patch: [{ op: 'add', path: '/constructor/x', value: 1 }],
      code: 422,
      why: 'add operation does not apply: doc is missing path: "/constructor/x": missing value',
    },
    { title: 'an object as the patch', patch: {}, code: 400, why: '' },
    {
      title: 'too many operations',
      patch: Array.from({ length: maxJsonPatchOperations + 1 }, () => ({ op: 'test' })),
      code: 413,
      why: '',
    },
  ]
  for (const { title, patch, code, why } of refused) {
    it(`refuses ${title}`, () => {
      const error = failure(() => applyJsonPatch(doc, patch))
      expect(error.code).to.equal(code)
      if (code === 422) expect(error.status).to.deep.include({ message, details: { causes: [{ message: why }] } })
    })
  }

  it('bounds the bytes that copies add', () => {
    const patch: JsonValue[] = [{ op: 'add', path: '/l', value: ['x'.repeat(1000)] }]
    for (let i = 0; i < 40; i++) patch.push({ op: 'copy', from: '/l', path: '/l/-' })
    expect(failure(() => applyJsonPatch({}, patch)).status.details?.causes?.[0]?.message).to.contain(
      'exceeding the limit 3145728',
    )
  })

  it('applies 10,000 operations in linear time', () => {
    const patch = Array.from({ length: maxJsonPatchOperations }, (_, i) => ({
      op: 'add',
      path: `/data/k${String(i)}`,
      value: i,
    }))
    const started = performance.now()
    const result = applyJsonPatch({ data: {} }, patch) as { data: JsonObject }
    expect(Object.keys(result.data)).to.have.length(maxJsonPatchOperations)
    expect(performance.now() - started).to.be.below(2000)
  })

  it('never changes its arguments, and throws only StatusErrors', () => {
    const path = fc
      .array(fc.constantFrom('a', 'b', '0', '-1', '-', ''))
      .map((steps) => steps.map((step) => `/${step}`).join(''))
    const operation = fc.record({
      op: fc.constantFrom('add', 'remove', 'replace', 'move', 'copy', 'test'),
      path,
      from: path,
      value: fc.jsonValue({ maxDepth: 2 }),
    })
    const document = fc.letrec((tie) => ({
      node: fc.oneof(
        { depthSize: 'small' },
        fc.integer(),
        fc.array(tie('node')),
        fc.dictionary(fc.constantFrom('a', 'b'), tie('node')),
      ),
    })).node as fc.Arbitrary<JsonValue>
    fc.assert(
      fc.property(document, fc.array(operation), (from, operations) => {
        const patch = operations as JsonValue
        const before = JSON.stringify([from, patch])
        try {
          applyJsonPatch(from, patch)
        } catch (error) {
          expect(isStatusError(error), String(error)).to.equal(true)
        }
        expect(JSON.stringify([from, patch])).to.equal(before)
      }),
      { numRuns: 2000 },
    )
  })

  it('refuses operations that move the items of a long list again and again', () => {
    const list = Array.from({ length: 100_000 }, (_, i) => i)
    const operations = Array.from({ length: 10_000 }, () => ({ op: 'add', path: '/list/0', value: 1 }))
    expect(() => applyJsonPatch({ list }, operations)).to.throw('The operations of the JSON patch take too long')
    const appended = operations.map(({ op, value }) => ({ op, path: '/list/-', value }))
    expect(applyJsonPatch({ list }, appended)).to.have.property('list').with.lengthOf(110_000)
  })
})

function sorted(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, item]) => [key, sorted(item)])
}
