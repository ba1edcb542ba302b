import { expect } from 'chai'
import fc from 'fast-check'
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import { WorkBudget } from '#apimachinery/work-budget/index.ts'
import { applyDefaults, commonSchema, parseStructuralSchema, pruneUnknown, validate } from './index.ts'

const string = { type: 'string' }
const spec = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({
  type: 'object',
  properties: { spec: { type: 'object', ...(Object.keys(properties).length > 0 && { properties }), ...more } },
})
const named = (schemas: readonly JsonObject[]) =>
  schemas.map((schema, index) => ({ member: ['east', 'west', 'north'][index] ?? '', schema }))
const common = (...schemas: JsonObject[]): JsonObject | undefined => {
  const found = commonSchema(named(schemas))
  return 'schema' in found ? found.schema : undefined
}
const losses = (...schemas: JsonObject[]): string[] => {
  const found = commonSchema(named(schemas))
  const all = 'schema' in found ? found.losses : [found.conflict]
  return all.map(({ path, kind, what, members }) => `${path} ${kind}: ${what} (${members.join(', ')})`)
}

interface Case {
  title: string
  east: JsonObject
  west: JsonObject
  result: JsonObject
  told: string[]
}

describe('the common schema of several members', () => {
  for (const { title, east, west, result, told } of [
    {
      title: 'lacks a field that one member does not know',
      east: { size: { type: 'integer' }, colour: string },
      west: { size: { type: 'integer' } },
      result: { size: { type: 'integer' } },
      told: ['.spec.colour dropped: is not known (west)'],
    },
    {
      title: 'lacks a field whose types differ',
      east: { size: { type: 'integer' } },
      west: { size: string },
      result: {},
      told: ['.spec.size dropped: has different types: integer in east, string in west (east, west)'],
    },
    {
      title: 'has the tighter of two bounds, each from its member',
      east: { size: { type: 'integer', minimum: 1, maximum: 9 } },
      west: { size: { type: 'number', minimum: 3 } },
      result: { size: { type: 'integer', minimum: 3, maximum: 9 } },
      told: [
        '.spec.size narrowed: must be of type integer (east)',
        '.spec.size narrowed: must have at least 3 (west)',
        '.spec.size narrowed: must have at most 9 (east)',
      ],
    },
    {
      title: 'has the values of both enums',
      east: { tier: { ...string, enum: ['gold', 'silver'] } },
      west: { tier: { ...string, enum: ['silver', 'bronze', 'gold'] } },
      result: { tier: { ...string, enum: ['gold', 'silver'] } },
      told: ['.spec.tier narrowed: takes "gold", "silver" only (east)'],
    },
    {
      title: 'has both patterns and the keys that tell items apart in both',
      east: { tags: { ...list(['a', 'b']), 'x-kubernetes-list-type': 'map' }, name: { ...string, pattern: '^a' } },
      west: { tags: { ...list(['a']), 'x-kubernetes-list-type': 'map' }, name: { ...string, pattern: 'b$' } },
      result: {
        tags: { ...list(['a']), 'x-kubernetes-list-type': 'map' },
        name: { ...string, allOf: [{ pattern: '^a' }, { pattern: 'b$' }] },
      },
      told: [
        '.spec.name narrowed: must meet {"pattern":"^a"} (east)',
        '.spec.name narrowed: must meet {"pattern":"b$"} (west)',
      ],
    },
    {
      title: 'has the fields of a schema where the other one takes any, and those of a map by their names',
      east: {
        any: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        map: { type: 'object', additionalProperties: string },
      },
      west: { any: { type: 'object', properties: { a: string } }, map: { type: 'object', properties: { a: string } } },
      result: {
        any: { type: 'object', properties: { a: string } },
        map: { type: 'object', properties: { a: string } },
      },
      told: ['.spec.any dropped: keeps no unknown fields (west)', '.spec.map.* dropped: is not known (west)'],
    },
    {
      title: 'has a default that all have, and none where they differ',
      east: { a: { ...string, default: 'x' }, b: { ...string, default: 'x' } },
      west: { a: { ...string, default: 'x' }, b: { ...string, default: 'y' } },
      result: { a: { ...string, default: 'x' }, b: string },
      told: ['.spec.b narrowed: has no common default (west)'],
    },
  ] as Case[])
    it(title, () => {
      expect(common(spec(east), spec(west))).to.deep.equal(spec(result))
      expect(losses(spec(east), spec(west))).to.deep.equal(told)
    })

  function list(keys: string[]): JsonObject {
    return {
      type: 'array',
      items: { type: 'object', properties: { a: string, b: string }, required: ['a', 'b'] },
      'x-kubernetes-list-map-keys': keys,
    }
  }

  it('has the rules of all, and forbids a lost field that one of them reads', () => {
    const rule = { rule: "self.size > 3 || self.colour == 'red'" }
    const other = { rule: 'self.size < 9' }
    const size = { type: 'integer' }
    const east = spec({ size, colour: string }, { 'x-kubernetes-validations': [rule] })
    const west = spec({ size }, { 'x-kubernetes-validations': [other] })
    expect(common(east, west)).to.deep.equal(
      spec(
        { size, colour: string },
        {
          'x-kubernetes-validations': [
            { rule: '!has(self.colour)', message: 'colour is not known to all member clusters' },
            other,
            rule,
          ],
        },
      ),
    )
  })

  it('leaves out conditions on lost fields that hold without them', () => {
    const anyOf = [{ required: ['colour'] }, { required: ['size'] }]
    const east = spec({ size: string, colour: string }, { anyOf })
    expect(common(east, spec({ size: string }))).to.deep.equal(
      spec({ size: string }, { anyOf: [{ required: ['size'] }] }),
    )
    expect(losses(east, spec({ weight: string }))[0]).to.match(/^\.spec dropped: has a condition on fields/)
  })

  it('does not exist if one member requires what another one does not know', () => {
    const east = { ...spec({ colour: string }, { required: ['colour'] }), required: ['spec'] }
    expect(losses(east, spec({}))).to.deep.equal([
      '.spec dropped: is required, and .spec.colour is required, and is not known (east, west)',
    ])
  })

  it('exists if the member that requires the field has a default for it', () => {
    const east = spec({ colour: { ...string, default: 'red' } }, { required: ['colour'] })
    expect(common(east, spec({}))).to.deep.equal(spec({}))
  })

  it('charges its work, and refuses schemas that are nested too deeply', () => {
    const wide = (other: string) =>
      spec(Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`${other}${i}`, string])))
    expect(() => commonSchema(named([wide('a'), wide('b')]), { work: new WorkBudget({ steps: 100 }) })).to.throw(
      'too large',
    )
    let [one, two]: JsonObject[] = [
      { type: 'object', properties: { a: string } },
      { type: 'object', properties: { b: string } },
    ]
    for (let i = 0; i < 150; i++)
      [one, two] = [
        { type: 'object', properties: { p: one! } },
        { type: 'object', properties: { p: two! } },
      ]
    expect(() => commonSchema(named([one!, two!]))).to.throw('nested')
  })
})

function withoutDefault(field: JsonValue | undefined): JsonValue {
  const { default: _default, ...rest } = field as JsonObject
  return rest
}

/** The schema, without a default that it refuses. */
function withValidDefault(schema: JsonObject): JsonObject {
  const { default: value } = schema
  return value === undefined || validate(value, parseStructuralSchema(schema)).length === 0
    ? schema
    : (withoutDefault(schema) as JsonObject)
}

/** A map and an object that has fields with names beside any others have no common schema that could be written. */
function isOpenWithNames(schema: JsonValue): boolean {
  if (typeof schema !== 'object' || schema === null) return false
  const { properties, 'x-kubernetes-preserve-unknown-fields': open } = schema as JsonObject
  return (open === true && properties !== undefined) || Object.values(schema).some(isOpenWithNames)
}

describe('the common schema of generated schemas', () => {
  const leaf = fc
    .oneof(
      fc.record(
        {
          type: fc.constantFrom('integer', 'number'),
          minimum: fc.integer({ min: 0, max: 3 }),
          maximum: fc.integer({ min: 1, max: 4 }),
          exclusiveMinimum: fc.boolean(),
          multipleOf: fc.constantFrom(1, 2, 3),
          default: fc.constantFrom(1, 2),
          nullable: fc.boolean(),
        },
        { requiredKeys: ['type'] },
      ),
      fc.record(
        {
          type: fc.constant('string'),
          enum: fc.subarray(['a', 'ab', 'b'], { minLength: 1 }),
          minLength: fc.integer({ min: 0, max: 2 }),
          maxLength: fc.integer({ min: 1, max: 2 }),
          pattern: fc.constantFrom('^a', 'b$'),
          default: fc.constantFrom('a', 'ab'),
          nullable: fc.boolean(),
        },
        { requiredKeys: ['type'] },
      ),
      fc.constant({ type: 'boolean' }),
      fc.constantFrom<JsonObject>(
        { 'x-kubernetes-int-or-string': true },
        { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
        { 'x-kubernetes-preserve-unknown-fields': true },
      ),
    )
    .map((node) => withValidDefault(node as JsonObject))
  const condition = fc.constantFrom<JsonObject>(
    { anyOf: [{ required: ['p'] }, { required: ['q'] }] },
    { oneOf: [{ required: ['p'] }, { required: ['q'] }] },
    { not: { required: ['p'] } },
    {},
    {},
    {},
  )
  const ofObject = (tie: fc.Arbitrary<JsonObject>) =>
    fc
      .tuple(
        fc.record(
          {
            type: fc.constant('object'),
            properties: fc.dictionary(fc.constantFrom('p', 'q'), tie, { maxKeys: 2, minKeys: 1 }),
            required: fc.subarray(['p', 'q'], { minLength: 1 }),
            maxProperties: fc.integer({ min: 1, max: 3 }),
            'x-kubernetes-preserve-unknown-fields': fc.constant(true),
          },
          { requiredKeys: ['type'] },
        ),
        condition,
      )
      .map(([node, more]): JsonObject => {
        const { required = [], properties = {}, maxProperties, ...rest } = node
        const known = properties as JsonObject
        const conditions = { ...(known['p'] && known['q'] && more), ...(maxProperties && { maxProperties }) }
        // A member that adds a default may refuse what it has added, whatever others accept.
        const isBound = Object.keys(conditions).length > 0
        const fields = Object.entries(known).map(([key, field]) => [key, isBound ? withoutDefault(field) : field])
        const needed = required.filter((key) => known[key] !== undefined)
        return {
          ...rest,
          ...(fields.length > 0 && { properties: Object.fromEntries(fields) as JsonObject }),
          ...(needed.length > 0 && { required: needed }),
          ...conditions,
        }
      })
  const schemas = fc.letrec<{ node: JsonObject }>((tie) => ({
    node: fc.oneof(
      { maxDepth: 3 },
      leaf,
      ofObject(tie('node')),
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
      fc.constantFrom<JsonValue>('', 'a', 'ab', 0, 1, 2, 4, null, true, 2.5),
      fc.dictionary(fc.constantFrom('p', 'q', 'r'), tie('value'), { maxKeys: 3 }),
      fc.array(tie('value'), { maxLength: 3 }),
    ),
  })).value
  /** Unrelated schemas have little in common, so most pairs are two variants of one. */
  const variants = fc
    .tuple(schemas, schemas, schemas, fc.integer({ min: 0, max: 5 }))
    .map(([a, b, c, how]): [JsonObject, JsonObject, JsonObject] => {
      if (how === 0) return [a, b, c]
      const mix = (one: JsonObject, other: JsonObject, n: number): JsonObject => {
        if (one['type'] !== other['type'] || one['additionalProperties'] || other['additionalProperties']) return one
        const mixed: JsonObject = { ...one, ...Object.fromEntries(Object.entries(other).slice(n, n + 2)) }
        const isBound = ['anyOf', 'oneOf', 'not', 'maxProperties'].some((name) => mixed[name] !== undefined)
        if (!isBound || mixed['properties'] === undefined) return withValidDefault(mixed)
        const fields = Object.entries(mixed['properties'] as JsonObject).map(([key, field]) => [
          key,
          withoutDefault(field),
        ])
        return { ...mixed, properties: Object.fromEntries(fields) as JsonObject }
      }
      return [a, mix(a, b, how % 3), mix(a, c, (how + 1) % 3)]
    })
  const root = (v: JsonObject): JsonObject => ({ type: 'object', properties: { v } })

  it('depends neither on order nor on grouping, and is its own common schema', () => {
    let whole = 0
    fc.assert(
      fc.property(variants, ([a, b, c]) => {
        if ([a, b, c].some(isOpenWithNames)) return
        const [one, two, three] = [root(a), root(b), root(c)]
        const all = common(one, two, three)
        expect(common(three, one, two)).to.deep.equal(all)
        expect(common(one, one)).to.deep.equal(one)
        const pair = common(one, two)
        expect(pair && common(pair, three)).to.deep.equal(all)
        const other = common(two, three)
        expect(other && common(one, other)).to.deep.equal(all)
        if (all !== undefined) expect(common(all, one, two)).to.deep.equal(all)
        if (all?.['properties'] !== undefined) whole++
      }),
      { numRuns: 400 },
    )
    expect(whole).to.be.greaterThan(60)
  })

  it('accepts nothing that a member refuses, and keeps no field that a member drops', () => {
    let checked = 0
    fc.assert(
      fc.property(variants, fc.array(values, { minLength: 15, maxLength: 15 }), ([a, b, c], all) => {
        const members = [root(a), root(b), root(c)]
        const shared = common(...members)
        if (shared === undefined) return
        const schema = parseStructuralSchema(shared)
        for (const v of all) {
          const object: JsonObject = { v: structuredClone(v) }
          pruneUnknown(object, schema, { isResourceRoot: false })
          applyDefaults(object, schema)
          if (validate(object, schema).length > 0) continue
          if (object['v'] !== undefined) checked++
          for (const member of members) {
            const text = `${JSON.stringify(object)} of ${JSON.stringify(shared)} under ${JSON.stringify(member)}`
            const there = structuredClone(object)
            const own = parseStructuralSchema(member)
            expect(pruneUnknown(there, own, { isResourceRoot: false }), text).to.deep.equal([])
            applyDefaults(there, own)
            expect(validate(there, own), text).to.deep.equal([])
          }
        }
      }),
      { numRuns: 400 },
    )
    expect(checked).to.be.greaterThan(200)
  })
})
