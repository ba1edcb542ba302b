// Schemas and values whose check would block the thread for long: they are refused in bounded time.
import { expect } from 'chai'
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { applyDefaults } from './apply-defaults.ts'
import type { SchemaNode } from './schema-node.ts'
import { validate } from './validate.ts'

const list = (items: SchemaNode): SchemaNode => ({ type: 'array', items })

function refusal(value: JsonValue, schema: SchemaNode): unknown {
  try {
    return validate(value, schema)
  } catch (error) {
    return error
  }
}

describe('the cost of a check against a schema', () => {
  for (const [title, value, schema] of [
    [
      'an expression of many instructions on a long text',
      'ab'.repeat(50_000),
      { type: 'string', pattern: '(?i)([a-z]{0,20}){0,40}!' },
    ],
    [
      'the same on many short ones',
      Array<string>(2000).fill('ab'.repeat(25)),
      list({ type: 'string', pattern: '(?i)([a-z]{0,20}){0,40}!' }),
    ],
    [
      'ten thousand alternatives for ten thousand items',
      Array.from({ length: 10_000 }, (_, i) => i),
      list({ anyOf: [...Array.from({ length: 10_000 }, (_, i) => ({ minimum: 20_000 + i })), { minimum: 0 }] }),
    ],
  ] as const)
    it(`is refused: ${title}`, () => {
      const error = refusal(value, schema)
      expect(isStatusError(error, 'RequestEntityTooLarge'), String(error)).to.equal(true)
    })

  it('is small for 50,000 values of an enum of 50,000', () => {
    const values = Array.from({ length: 50_000 }, (_, i) => `v${i}`)
    expect(validate(values, list({ type: 'string', enum: values }))).to.deep.equal([])
    const objects = values.map((v) => ({ v }))
    expect(validate(objects.slice(0, 100), list({ enum: objects }))).to.deep.equal([])
    expect(validate([{ w: 1 }, null], list({ enum: [{ v: 1 }] }))).to.have.length(2)
  })

  it('stays within the budget for ordinary large objects', () => {
    const name: SchemaNode = { type: 'string', pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$' }
    const value = Array.from({ length: 10_000 }, (_, i) => ({ name: `some-quite-long-name-of-a-thing-${i}` }))
    expect(validate(value, list({ type: 'object', required: ['name'], properties: { name } }))).to.deep.equal([])
  })

  it('bounds what defaults add: many small items with a large default', () => {
    const items: JsonValue[] = Array.from({ length: 40_000 }, () => ({}))
    const big: SchemaNode = { type: 'string', default: 'x'.repeat(20_000) }
    const schema: SchemaNode = { type: 'object', properties: { list: list({ type: 'object', properties: { big } }) } }
    const object: JsonObject = { list: items }
    expect(applyDefaults(object, schema)).to.equal(false)
    expect(JSON.stringify(object).length).to.be.below(10_000_000)
    expect(applyDefaults({ list: items.slice(-3).map(() => ({})) }, schema)).to.equal(true)
  })
})
