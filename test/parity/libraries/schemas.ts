// The places where kube-apiserver finds errors of a status, and the parts that it keeps of a schema.
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import { crdsPath, install, objectsPath, sampleCrd, sampleObject } from '#test/parity/crds/sample-crd.ts'
import { row, type Row } from '#test/parity/support/compare-rows.ts'

const text = { type: 'string' }
const status: JsonObject = {
  type: 'object',
  required: ['phase'],
  properties: {
    phase: { type: 'string', enum: ['A', 'B'] },
    count: { type: 'integer', minimum: 1, maximum: 5, multipleOf: 2 },
    name: { type: 'string', minLength: 2, maxLength: 3, pattern: '^[a-z]+$' },
    at: { type: 'string', format: 'date-time' },
    list: { type: 'array', minItems: 1, maxItems: 2, 'x-kubernetes-list-type': 'set', items: text },
    items: {
      ...{ type: 'array', 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['key'] },
      items: { type: 'object', required: ['key'], properties: { key: text, value: { type: 'integer', maximum: 3 } } },
    },
    map: { type: 'object', maxProperties: 1, additionalProperties: { type: 'integer' } },
    nested: { type: 'object', required: ['a'], properties: { a: text, b: { type: 'boolean' } } },
    any: { type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true },
    either: { 'x-kubernetes-int-or-string': true },
    rule: {
      ...{ type: 'object', properties: { low: { type: 'integer' }, high: { type: 'integer' } } },
      'x-kubernetes-validations': [
        { rule: 'self.low < self.high', message: 'low must be below high' },
        {
          rule: '!has(oldSelf.low) || self.low >= oldSelf.low',
          message: 'low must not fall',
          fieldPath: '.low',
          reason: 'FieldValueForbidden',
        },
      ],
    },
    alternatives: {
      type: 'object',
      properties: { x: text, y: text },
      oneOf: [{ required: ['x'] }, { required: ['y'] }],
      not: { required: ['z'] },
    },
  },
  'x-kubernetes-validations': [{ rule: 'self.phase != "B" || has(self.count)', message: 'B has a count' }],
}
const wrong: readonly JsonValue[] = [
  ...[{}, null, 'text', 5, [], { phase: 'C' }, { phase: 1 }, { phase: null }, { phase: 'B' }],
  ...[
    { count: 0 },
    { count: 6 },
    { count: 3 },
    { count: 1.5 },
    { count: 'x' },
    { name: 'a' },
    { name: 'abcd' },
    { name: 'A1' },
  ],
  ...[{ at: 'now' }, { list: [] }, { list: ['a', 'b', 'c'] }, { list: ['a', 'a'] }, { list: [1] }, { list: {} }],
  ...[
    { items: [{ value: 1 }] },
    { items: [{ key: 'a' }, { key: 'a' }] },
    { items: [{ key: 'a', value: 4 }] },
    { items: ['a'] },
  ],
  ...[{ map: { a: 1, b: 2 } }, { map: { a: 'x' } }, { map: [] }, { nested: {} }, { nested: { a: 1, b: 'x' } }],
  ...[{ any: {} }, { any: { apiVersion: 'v1' } }, { any: { apiVersion: 'v1', kind: 'X', metadata: { name: 'A B' } } }],
  ...[{ either: true }, { rule: { low: 2, high: 1 } }, { rule: { low: 0, high: 1 } }, { alternatives: {} }],
  ...[{ alternatives: { x: 'a', y: 'b' } }, { alternatives: { x: 'a', z: 'b' } }, { unknown: 1 }],
].map((value) =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length > 0
    ? { phase: 'A', ...value }
    : value,
)

/** Keywords that a schema of a definition does not have, and one that it has with a wrong value. */
const odd: JsonObject = {
  bogus: 1,
  readOnly: true,
  'x-custom': { a: [1] },
  deprecated: true,
  const: 'x',
  examples: [1],
  $comment: 'c',
  if: {},
}

const places: Readonly<Record<string, (extra: JsonObject) => JsonObject>> = {
  root: (extra) => ({ type: 'object', ...extra }),
  property: (extra) => ({ type: 'object', properties: { a: { type: 'string', ...extra } } }),
  items: (extra) => ({ type: 'object', properties: { a: { type: 'array', items: { type: 'string', ...extra } } } }),
  deepitems: (extra) => ({
    type: 'object',
    properties: {
      a: {
        type: 'array',
        items: { type: 'object', properties: { b: { type: 'array', items: { type: 'string', ...extra } } } },
      },
    },
  }),
  values: (extra) => ({
    type: 'object',
    properties: { a: { type: 'object', additionalProperties: { type: 'string', ...extra } } },
  }),
  valueitems: (extra) => ({
    type: 'object',
    properties: { a: { type: 'object', additionalProperties: { type: 'array', items: { type: 'string', ...extra } } } },
  }),
  not: (extra) => ({ type: 'object', properties: { a: text }, not: { required: ['z'], ...extra } }),
  allof: (extra) => ({ type: 'object', properties: { a: text }, allOf: [{ required: ['a'], ...extra }] }),
  anyof: (extra) => ({
    type: 'object',
    properties: { a: text },
    anyOf: [{ properties: { a: { minLength: 1, ...extra } } }],
  }),
  externaldocs: (extra) => ({ type: 'object', externalDocs: { url: 'u', ...extra } }),
  rules: (extra) => ({ type: 'object', 'x-kubernetes-validations': [{ rule: 'true', ...extra }] }),
}

export const schemaRows: readonly Row[] = [
  row('errors in a status', async (session) => {
    const schema = {
      type: 'object',
      properties: { spec: { type: 'object', properties: { size: { type: 'integer', maximum: 3 } } }, status },
    }
    await install(session, { word: 'state', schema, version: { subresources: { status: {} } } })
    const path = objectsPath('state', 'one')
    const object = (value: JsonValue): JsonObject => sampleObject('state', 'one', { status: value })
    await session.send('POST', objectsPath('state'), {
      body: sampleObject('state', 'one', { spec: { size: 1 } }),
      quiet: true,
    })
    await session.patch(`${path}/status`, { status: { phase: 'A', rule: { low: 1, high: 2 } } })
    for (const value of wrong) {
      await session.patch(`${path}/status`, { status: value })
      await session.change(path, (one) => Object.assign(one, { status: value }), { subresource: 'status' })
      // Of two values of a wrong type, a real server names either first; it keeps a null that is applied.
      if (!JSON.stringify(value).match(/null|nested.*b/))
        await session.patch(`${path}/status?fieldManager=a&force=true`, object(value), 'apply')
    }
    await session.patch(`${path}/status`, [{ op: 'remove', path: '/status' }], 'json')
    await session.patch(`${path}/status`, { metadata: { labels: { '-a': 'b' } } })
    await session.patch(`${path}/status`, { spec: { size: 9 } })
  }),
  ...Object.entries(places).map(([place, schemaWith]) =>
    row(`unknown keywords in a schema: ${place}`, async (session) => {
      for (const [name, value] of Object.entries(odd))
        for (const validation of ['', '&fieldValidation=Ignore', '&fieldValidation=Strict']) {
          const body = sampleCrd({ word: `kw${place}`, schema: schemaWith({ [name]: value }) })
          await session.send('POST', `${crdsPath}?dryRun=All${validation}`, { body, without: ['status', 'metadata'] })
        }
    }),
  ),
]
