import { expect } from 'chai'
import fc from 'fast-check'
import { causeText } from '#apimachinery/field/index.ts'
import { cloneJson, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import {
  applyDefaults,
  formatCheck,
  parseStructuralSchema,
  pruneUnknown,
  structuralViolations,
  conversionErrors,
  typeErrors,
  validate,
  type SchemaNode,
} from './index.ts'

const object = (properties: JsonObject, extra: JsonObject = {}): JsonObject => ({
  type: 'object',
  properties,
  ...extra,
})
const string = { type: 'string' }

describe('pruneUnknown', () => {
  const schema = parseStructuralSchema(
    object({
      spec: object({
        known: string,
        list: { type: 'array', items: object({ a: string }) },
        map: { type: 'object', additionalProperties: object({ a: string }) },
        free: {
          type: 'object',
          'x-kubernetes-preserve-unknown-fields': true,
          properties: { strict: object({ a: string }) },
        },
        freeList: { type: 'array', 'x-kubernetes-preserve-unknown-fields': true, items: object({ a: object({}) }) },
        any: { type: 'object', additionalProperties: true },
        embedded: { type: 'object', 'x-kubernetes-embedded-resource': true, properties: { spec: object({}) } },
        port: { 'x-kubernetes-int-or-string': true },
      }),
      metadata: { type: 'object' },
    }),
  )
  const cases: { title: string; spec: JsonObject; pruned: JsonObject; dropped: string[] }[] = [
    { title: 'drops unknown fields', spec: { known: 'x', foo: 1 }, pruned: { known: 'x' }, dropped: ['spec.foo'] },
    {
      title: 'looks into lists',
      spec: { list: [{ a: 'x' }, { b: 1 }] },
      pruned: { list: [{ a: 'x' }, {}] },
      dropped: ['spec.list[1].b'],
    },
    {
      title: 'looks into maps',
      spec: { map: { k: { a: 'x', b: 1 } } },
      pruned: { map: { k: { a: 'x' } } },
      dropped: ['spec.map.k.b'],
    },
    {
      title: 'keeps fields under x-kubernetes-preserve-unknown-fields, but prunes inside known ones',
      spec: { free: { x: { y: 1 }, strict: { b: 1 } } },
      pruned: { free: { x: { y: 1 }, strict: {} } },
      dropped: ['spec.free.strict.b'],
    },
    {
      title: 'keeps items of a preserving list',
      spec: { freeList: [{ x: 1, a: { b: 1 } }] },
      pruned: { freeList: [{ x: 1, a: {} }] },
      dropped: ['spec.freeList[0].a.b'],
    },
    {
      title: 'knows nothing inside additionalProperties: true',
      spec: { any: { a: 1, b: { c: 1 } } },
      pruned: { any: { a: 1, b: {} } },
      dropped: ['spec.any.b.c'],
    },
    {
      title: 'knows metadata of embedded resources',
      spec: { embedded: { kind: 'X', metadata: { name: 'n', bad: 1 }, spec: {}, x: 1 } },
      pruned: { embedded: { kind: 'X', metadata: { name: 'n' }, spec: {} } },
      dropped: ['spec.embedded.metadata.bad', 'spec.embedded.x'],
    },
    {
      title: 'takes names of inherited properties as unknown',
      spec: { constructor: 1, toString: {} },
      pruned: {},
      dropped: ['spec.constructor', 'spec.toString'],
    },
  ]
  for (const { title, spec, pruned, dropped } of cases) {
    it(title, () => {
      const root = { apiVersion: 'v1', kind: 'X', metadata: { name: 'n' } }
      const value: JsonObject = { ...root, spec }
      expect(pruneUnknown(value, schema, { isResourceRoot: true })).to.deep.equal(dropped)
      expect(value).to.deep.equal({ ...root, spec: pruned })
      expect(pruneUnknown(value, schema, { isResourceRoot: true })).to.deep.equal([])
    })
  }
  it('keeps the fields of ObjectMeta, and reports unknown fields of the root', () => {
    const value: JsonObject = {
      metadata: { name: 'n', nmae: 1, labels: { a: 'b' }, ownerReferences: [{ uid: 'u', x: 1 }] },
      extra: 1,
    }
    expect(pruneUnknown(value, schema, { isResourceRoot: true })).to.deep.equal([
      'metadata.nmae',
      'metadata.ownerReferences[0].x',
      'extra',
    ])
  })
  it('walks cyclic schemas', () => {
    const node: SchemaNode = { type: 'object' }
    node.properties = { next: node }
    const value: JsonObject = { next: { next: { x: 1 } } }
    expect(pruneUnknown(value, node, { isResourceRoot: false })).to.deep.equal(['next.next.x'])
  })
})

describe('applyDefaults', () => {
  const schema = parseStructuralSchema(
    object({
      a: { type: 'string', default: 'A' },
      n: { type: 'string', nullable: true, default: 'N' },
      o: object({ b: { type: 'integer', default: 1 } }, { default: {} }),
      p: object({ b: { type: 'integer', default: 1 } }),
      l: { type: 'array', items: object({ b: { type: 'integer', default: 2 } }) },
      m: { type: 'object', additionalProperties: { type: 'integer', default: 7 } },
      q: string,
    }),
  )
  for (const { title, given, result } of [
    { title: 'fills absent fields, and defaults in defaults', given: {}, result: { a: 'A', n: 'N', o: { b: 1 } } },
    {
      title: 'replaces nulls of fields that are not nullable',
      given: { a: null, n: null, q: null },
      result: { a: 'A', n: null, o: { b: 1 } },
    },
    {
      title: 'looks into lists and maps',
      given: { l: [{}, { b: 3 }], m: { x: null, y: 1 } },
      result: { a: 'A', n: 'N', o: { b: 1 }, l: [{ b: 2 }, { b: 3 }], m: { x: 7, y: 1 } },
    },
    {
      title: 'fills in objects that are present',
      given: { p: {} },
      result: { a: 'A', n: 'N', o: { b: 1 }, p: { b: 1 } },
    },
  ] as { title: string; given: JsonObject; result: JsonObject }[]) {
    it(title, () => {
      const value = cloneJson(given)
      applyDefaults(value, schema)
      expect(value).to.deep.equal(result)
      applyDefaults(value, schema)
      expect(value).to.deep.equal(result)
    })
  }
  it('never hands out the default itself, but a copy', () => {
    const first: JsonObject = {}
    applyDefaults(first, schema)
    ;(first['o'] as JsonObject)['b'] = 99
    const second: JsonObject = {}
    applyDefaults(second, schema)
    expect(second['o']).to.deep.equal({ b: 1 })
  })
})

describe('validate', () => {
  const spec = (schema: JsonObject): SchemaNode => parseStructuralSchema(object({ spec: object({ x: schema }) }))
  const cases: { title: string; schema: JsonObject; x: JsonValue; causes: string[] }[] = [
    {
      title: 'type',
      schema: { type: 'integer' },
      x: 'a',
      causes: ['spec.x: Invalid value: "string": spec.x in body must be of type integer: "string"'],
    },
    { title: 'integer for number', schema: { type: 'number' }, x: 1, causes: [] },
    {
      title: 'fraction for integer',
      schema: { type: 'integer' },
      x: 1.5,
      causes: ['spec.x: Invalid value: "number": spec.x in body must be of type integer: "number"'],
    },
    {
      title: 'null',
      schema: { type: 'string' },
      x: null,
      causes: ['spec.x: Invalid value: "null": spec.x in body must be of type string: "null"'],
    },
    { title: 'nullable', schema: { type: 'string', nullable: true }, x: null, causes: [] },
    {
      title: 'int or string',
      schema: { 'x-kubernetes-int-or-string': true },
      x: true,
      causes: ['spec.x: Invalid value: "boolean": spec.x in body must be of type integer,string: "boolean"'],
    },
    { title: 'required', schema: object({}, { required: ['y'] }), x: {}, causes: ['spec.x.y: Required value'] },
    {
      title: 'required of what objects inherit',
      schema: object({}, { required: ['constructor'] }),
      x: {},
      causes: ['spec.x.constructor: Required value'],
    },
    {
      title: 'enum',
      schema: { type: 'string', enum: ['A', 'B'] },
      x: 'C',
      causes: ['spec.x: Unsupported value: "C": supported values: "A", "B"'],
    },
    {
      title: 'enum of numbers',
      schema: { type: 'integer', enum: [1, 2] },
      x: 3,
      causes: ['spec.x: Unsupported value: 3: supported values: "1", "2"'],
    },
    {
      title: 'maxLength',
      schema: { type: 'string', maxLength: 2 },
      x: 'abc',
      causes: ['spec.x: Too long: may not be more than 2 bytes'],
    },
    { title: 'maxLength in runes', schema: { type: 'string', maxLength: 2 }, x: '😀😀', causes: [] },
    {
      title: 'minLength',
      schema: { type: 'string', minLength: 2 },
      x: 'a',
      causes: ['spec.x: Invalid value: "a": spec.x in body should be at least 2 chars long'],
    },
    {
      title: 'pattern',
      schema: { type: 'string', pattern: '^[a-z]+$' },
      x: 'A',
      causes: [`spec.x: Invalid value: "A": spec.x in body should match '^[a-z]+$'`],
    },
    {
      title: 'maximum',
      schema: { type: 'integer', maximum: 3 },
      x: 4,
      causes: ['spec.x: Invalid value: 4: spec.x in body should be less than or equal to 3'],
    },
    {
      title: 'exclusive minimum',
      schema: { type: 'integer', minimum: 3, exclusiveMinimum: true },
      x: 3,
      causes: ['spec.x: Invalid value: 3: spec.x in body should be greater than 3'],
    },
    {
      title: 'multipleOf',
      schema: { type: 'number', multipleOf: 0.1 },
      x: 0.25,
      causes: ['spec.x: Invalid value: 0.25: spec.x in body should be a multiple of 0.1'],
    },
    {
      title: 'minItems',
      schema: { type: 'array', items: string, minItems: 1 },
      x: [],
      causes: ['spec.x: Invalid value: 0: spec.x in body should have at least 1 items'],
    },
    {
      title: 'maxItems',
      schema: { type: 'array', items: string, maxItems: 1 },
      x: ['a', 'b'],
      causes: ['spec.x: Too many: 2: must have at most 1 item'],
    },
    {
      title: 'items',
      schema: { type: 'array', items: string },
      x: ['a', 1],
      causes: ['spec.x[1]: Invalid value: "integer": spec.x[1] in body must be of type string: "integer"'],
    },
    {
      title: 'map values',
      schema: { type: 'object', additionalProperties: string },
      x: { k: 1 },
      causes: ['spec.x.k: Invalid value: "integer": spec.x.k in body must be of type string: "integer"'],
    },
    {
      title: 'maxProperties',
      schema: { type: 'object', additionalProperties: string, maxProperties: 1 },
      x: { a: '', b: '' },
      causes: ['spec.x: Too many: 2: must have at most 1 item'],
    },
    {
      title: 'format',
      schema: { type: 'string', format: 'date-time' },
      x: 'yesterday',
      causes: ['spec.x: Invalid value: "yesterday": spec.x in body must be of type date-time: "yesterday"'],
    },
    { title: 'unknown format', schema: { type: 'string', format: 'poem' }, x: 'yesterday', causes: [] },
    {
      title: 'oneOf',
      schema: object({ a: string, b: string }, { oneOf: [{ required: ['a'] }, { required: ['b'] }] }),
      x: { a: '', b: '' },
      causes: [
        '<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found 2 valid alternatives',
      ],
    },
    {
      title: 'anyOf',
      schema: object({ a: string, b: string }, { anyOf: [{ required: ['a'] }, { required: ['b'] }] }),
      x: {},
      causes: [
        '<nil>: Invalid value: "": "spec.x" must validate at least one schema (anyOf)',
        'spec.x.a: Required value',
      ],
    },
    {
      title: 'allOf',
      schema: { type: 'integer', allOf: [{ minimum: 1 }, { minimum: 5 }] },
      x: 3,
      causes: [
        'spec.x: Invalid value: 3: spec.x in body should be greater than or equal to 5',
        '<nil>: Invalid value: "": "spec.x" must validate all the schemas (allOf)',
      ],
    },
    {
      title: 'not',
      schema: object({ a: string }, { not: { required: ['a'] } }),
      x: { a: '' },
      causes: ['<nil>: Invalid value: "": "spec.x" must not validate the schema (not)'],
    },
    {
      title: 'sets',
      schema: { type: 'array', items: string, 'x-kubernetes-list-type': 'set' },
      x: ['a', 'b', 'a', 'a'],
      causes: ['spec.x[2]: Duplicate value: "a"'],
    },
    {
      title: 'maps by key',
      schema: {
        type: 'array',
        items: object({ n: string }),
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['n'],
      },
      x: [{ n: 'a' }, { n: 'a' }],
      causes: ['spec.x[1]: Duplicate value: {"n":"a"}'],
    },
  ]
  for (const { title, schema, x, causes } of cases) {
    it(`reports ${title}`, () => {
      expect(validate({ spec: { x } }, spec(schema)).map(causeText)).to.deep.equal(causes)
    })
  }
  it('stays fast for a pattern and a value built to backtrack', () => {
    const started = performance.now()
    expect(
      validate({ spec: { x: `${'a'.repeat(50_000)}!` } }, spec({ type: 'string', pattern: '^(a+)+$' })),
    ).to.have.length(1)
    expect(performance.now() - started).to.be.below(2000)
  })
  it('reports a bounded number of errors', () => {
    expect(
      validate({ spec: { x: Array<JsonValue>(100_000).fill(1) } }, spec({ type: 'array', items: string })),
    ).to.have.length(500)
  })
  it('finds nothing wrong with a pruned and defaulted value, and never throws', () => {
    const schema = parseStructuralSchema(
      object({
        a: { ...string, default: 'x' },
        b: { type: 'array', items: object({ c: { type: 'integer' } }) },
        d: { 'x-kubernetes-preserve-unknown-fields': true },
      }),
    )
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd', '__proto__'), fc.jsonValue({ maxDepth: 4 })),
        (value) => {
          const copy = JSON.parse(JSON.stringify(value)) as JsonObject
          pruneUnknown(copy, schema, { isResourceRoot: false })
          applyDefaults(copy, schema)
          expect(pruneUnknown(copy, schema, { isResourceRoot: false })).to.deep.equal([])
          validate(copy, schema)
          typeErrors(copy, schema)
          expect(Object.keys(copy).every((key) => ['a', 'b', 'd'].includes(key))).to.equal(true)
        },
      ),
      { numRuns: 1000 },
    )
  })
})

describe('formats', () => {
  for (const [format, good, bad] of [
    ['date-time', '2024-02-29T23:59:59.5Z', '2023-02-29T00:00:00Z'],
    ['date', '2024-12-31', '2024-13-01'],
    ['ipv4', '10.0.0.1', '10.0.0.256'],
    ['ipv6', '::1', '10.0.0.1'],
    ['cidr', '10.0.0.0/8', '10.0.0.0/33'],
    ['mac', '00:00:5e:00:53:01', '00:00:5e:00:53'],
    ['uuid', '123e4567-e89b-12d3-a456-426614174000', '123e4567'],
    ['email', 'a@b.c', 'a.b.c'],
    ['uri', 'https://a.b/c?d', 'a.b/c'],
    ['hostname', 'a.example.com', '-a.example.com'],
    ['byte', 'aGk=', 'aGk'],
    ['duration', '1h30m', 'soon'],
    ['hexcolor', '#fff', '#ffff'],
    ['isbn', '978-0321751041', '978-0321751042'],
    ['isbn10', '0321751043', '0321751044'],
    ['creditcard', '4111 1111 1111 1111', '4111 1111 1111 1112'],
    ['k8s-short-name', 'web-1', 'a.b'],
  ] as const) {
    it(format, () => {
      expect(formatCheck(format)?.(good)).to.equal(true)
      expect(formatCheck(format)?.(bad)).to.equal(false)
    })
  }

  it('accept a duration with a unit after spaces, or after other text', () => {
    for (const good of ['12 days', 'about 3 h', '-1.5h', '1x2m']) expect(formatCheck('duration')?.(good)).to.equal(true)
    for (const bad of ['12 x', '12', 'h']) expect(formatCheck('duration')?.(bad)).to.equal(false)
  })

  it('take linear time for a long number without a unit', () => {
    const started = performance.now()
    expect(formatCheck('duration')?.('1'.repeat(300_000))).to.equal(false)
    expect(formatCheck('duration')?.(`${'1'.repeat(300_000)}${' '.repeat(300_000)}`)).to.equal(false)
    expect(performance.now() - started).to.be.lessThan(3000)
  })
})

describe('typeErrors', () => {
  const schema: SchemaNode = {
    type: 'object',
    typeName: 'Deployment',
    properties: {
      spec: {
        type: 'object',
        typeName: 'DeploymentSpec',
        properties: {
          replicas: { type: 'integer', format: 'int32' },
          paused: { type: 'boolean' },
          containers: {
            type: 'array',
            items: { type: 'object', typeName: 'Container', properties: { name: { type: 'string' } } },
          },
          labels: { type: 'object', additionalProperties: { type: 'string' } },
          port: { intOrString: true },
          cpu: { type: 'string', typeName: 'Quantity' },
          data: { type: 'string', format: 'byte' },
          at: { type: 'string', format: 'date-time', typeName: 'Time' },
        },
      },
    },
  }
  for (const [spec, error] of [
    [
      { replicas: '3' },
      'json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32',
    ],
    [
      { replicas: 1.5 },
      'json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32',
    ],
    [
      { replicas: 2 ** 31 },
      'json: cannot unmarshal number 2147483648 into Go struct field DeploymentSpec.spec.replicas of type int32',
    ],
    [{ paused: 'true' }, 'json: cannot unmarshal string into Go struct field DeploymentSpec.spec.paused of type bool'],
    [
      { containers: {} },
      'json: cannot unmarshal object into Go struct field DeploymentSpec.spec.containers of type []v1.Container',
    ],
    [
      { containers: [{ name: 1 }] },
      'json: cannot unmarshal number into Go struct field Container.spec.containers.name of type string',
    ],
    [
      { labels: { a: true } },
      'json: cannot unmarshal bool into Go struct field DeploymentSpec.spec.labels of type string',
    ],
    [{ port: [] }, 'json: cannot unmarshal array into Go struct field DeploymentSpec.spec.port of type int32'],
    [{ cpu: '1Mi1' }, "unable to parse quantity's suffix"],
    [{ cpu: '1 apple' }, "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"],
    [{ at: 'x' }, 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'],
    [{ at: '2024-02-30T00:00:00Z' }, 'parsing time "2024-02-30T00:00:00Z": day out of range'],
    [{ at: '2024-02-29T00:00:00.5+01:00', cpu: '500m' }, undefined],
    [{ data: 'a*b=' }, 'illegal base64 data at input byte 1'],
    [{ replicas: null, containers: null, port: 'x', cpu: 1, data: 'aGk=', unknown: {} }, undefined],
  ] as [JsonObject, string | undefined][]) {
    it(JSON.stringify(spec), () => {
      expect(typeErrors({ spec }, schema)).to.deep.equal(error === undefined ? [] : [error])
    })
  }
  for (const [spec, error] of [
    [{ replicas: '3' }, 'unrecognized type: int32'],
    [{ replicas: 1.5 }, 'cannot convert float64 to int32'],
    [{ paused: 'true' }, 'unrecognized type: bool'],
    [{ containers: {} }, 'cannot restore slice from map'],
    [{ containers: [1] }, 'cannot restore struct from: int64'],
    [{ containers: [{ name: 1 }] }, 'cannot convert int64 to string'],
    [{ labels: { a: true } }, 'unrecognized type: string'],
    [{ labels: 'a' }, 'cannot restore map from string'],
    [{ port: true }, 'json: cannot unmarshal bool into Go value of type int32'],
  ] as [JsonObject, string][]) {
    it(`match the converter of a strategic merge: ${JSON.stringify(spec)}`, () => {
      expect(conversionErrors({ spec }, schema)).to.deep.equal([error])
    })
  }
  it('name no field for the root', () => {
    expect(typeErrors([], schema)).to.deep.equal(['json: cannot unmarshal array into Go value of type v1.Deployment'])
  })
})

describe('structuralViolations', () => {
  const at = 'spec.validation.openAPIV3Schema'
  const cases: { title: string; schema: JsonObject; causes: string[] }[] = [
    { title: 'a plain schema', schema: object({ a: string }), causes: [] },
    {
      title: 'no type',
      schema: object({ a: {} }),
      causes: [`${at}.properties[a].type: Required value: must not be empty for specified object fields`],
    },
    { title: 'no root type', schema: {}, causes: [`${at}.type: Required value: must not be empty at the root`] },
    {
      title: 'a list without items',
      schema: object({ a: { type: 'array' } }),
      causes: [`${at}.properties[a].items: Required value: must be specified`],
    },
    {
      title: 'a type in anyOf',
      schema: object({ a: { type: 'object', anyOf: [{ type: 'object' }] } }),
      causes: [`${at}.properties[a].anyOf[0].type: Forbidden: must be empty to be structural`],
    },
    {
      title: 'int or string spelled out',
      schema: object({ a: { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] } }),
      causes: [],
    },
    {
      title: 'metadata restrictions',
      schema: object({ metadata: object({ labels: { type: 'object' } }) }),
      causes: [
        `${at}.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified`,
      ],
    },
    {
      title: 'metadata names',
      schema: object({ metadata: object({ name: { ...string, maxLength: 5 } }) }),
      causes: [],
    },
    {
      title: 'a validation without structure',
      schema: object({}, { allOf: [{ properties: { b: { minLength: 1 } } }] }),
      causes: [`${at}.properties[b]: Required value: because it is defined in ${at}.allOf[0].properties[b]`],
    },
    {
      title: 'preserve without type',
      schema: object({ a: { 'x-kubernetes-preserve-unknown-fields': true } }),
      causes: [],
    },
    {
      title: 'an embedded resource without type',
      schema: object({ a: { 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true } }),
      causes: [`${at}.properties[a].type: Required value: must be object if x-kubernetes-embedded-resource is true`],
    },
  ]
  for (const { title, schema, causes } of cases) {
    it(title, () => expect(structuralViolations(schema, at).map(causeText)).to.deep.equal(causes))
  }
})
