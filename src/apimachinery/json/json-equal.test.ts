import { expect } from 'chai'
import { jsonEqual } from './json-equal.ts'

describe('jsonEqual', () => {
  const parsed = (text: string): unknown => JSON.parse(text)
  for (const [a, b, equal] of [
    [{ a: 1, b: [1, { c: null }] }, { b: [1, { c: null }], a: 1 }, true],
    [[1, 2], [2, 1], false],
    [[], {}, false],
    [[undefined], [], false],
    [{ a: undefined }, {}, false],
    [{ a: undefined }, { b: undefined }, false],
    [{}, { a: undefined }, false],
    [parsed('{"__proto__":{}}'), {}, false],
    [{}, parsed('{"__proto__":{}}'), false],
    [parsed('{"__proto__":{"a":1}}'), parsed('{"__proto__":{"a":1}}'), true],
    [{ constructor: 1 }, {}, false],
    [null, {}, false],
    ['1', 1, false],
  ] as const)
    it(`is ${equal} for ${JSON.stringify(a)} and ${JSON.stringify(b)}`, () => expect(jsonEqual(a, b)).to.equal(equal))
})
