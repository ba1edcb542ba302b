import { expect } from 'chai'
import type { SchemaNode } from '#apimachinery/schema/index.ts'
import { defaultValuesOf } from './default-values.ts'

const text: SchemaNode = { type: 'string', default: 'a' }
const cases: [string, SchemaNode, { toObject: number; toItem: number }][] = [
  ['none', { type: 'object', properties: { a: { type: 'string' } } }, { toObject: 0, toItem: 0 }],
  ['of fields, at any depth', { properties: { a: text, b: { properties: { c: text } } } }, { toObject: 2, toItem: 0 }],
  ['with values inside', { properties: { a: { default: { b: [1, 2], c: null } } } }, { toObject: 5, toItem: 0 }],
  [
    'and validation rules',
    { validations: [{ rule: 'a' }], properties: { a: { validations: [{ rule: 'b' }] } } },
    { toObject: 2, toItem: 0 },
  ],
  [
    'of items: those of the items with the most',
    {
      properties: { a: { items: { properties: { b: text, c: { additionalProperties: text } } } }, d: { items: text } },
    },
    { toObject: 0, toItem: 1 },
  ],
]

describe('the values that defaults can add', () => {
  for (const [title, schema, values] of cases)
    it(title, () => {
      expect(defaultValuesOf(schema)).to.deep.equal(values)
      expect(defaultValuesOf(schema)).to.equal(defaultValuesOf(schema))
    })
})
