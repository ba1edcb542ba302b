// Valid and invalid custom resources: pruning, defaults, every schema keyword, and the invalid values that an update
// may keep.
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import { row, type Row } from '#test/parity/support/compare-rows.ts'
import { crdPath, install, objectsPath, sampleObject } from './sample-crd.ts'
import type { Session } from '#test/parity/support/session.ts'

const text = { type: 'string' }
const object = (properties: JsonObject, rest: JsonObject = {}): JsonObject => ({ type: 'object', properties, ...rest })
const list = (items: JsonObject, rest: JsonObject = {}): JsonObject => ({ type: 'array', items, ...rest })

const properties: JsonObject = {
  text,
  short: { ...text, minLength: 2, maxLength: 4 },
  matching: { ...text, pattern: '^[a-z]+$' },
  chosen: { ...text, enum: ['a', 'b', ''] },
  chosenNumber: { type: 'integer', enum: [1, 2] },
  whole: { type: 'integer' },
  int32: { type: 'integer', format: 'int32' },
  int64: { type: 'integer', format: 'int64' },
  number: { type: 'number' },
  bounded: { type: 'integer', minimum: 3, maximum: 5 },
  open: { type: 'number', minimum: 3, maximum: 5, exclusiveMinimum: true, exclusiveMaximum: true },
  multiple: { type: 'number', multipleOf: 0.5 },
  flag: { type: 'boolean' },
  either: { 'x-kubernetes-int-or-string': true },
  nullable: { ...text, nullable: true },
  nullableDefault: { ...text, nullable: true, default: 'x' },
  defaulted: { ...text, default: 'yes' },
  defaults: object({ a: { ...text, default: 'one' }, b: { type: 'integer' } }, { default: {} }),
  inner: object({ a: { ...text, default: 'one' } }),
  list: list(text, { minItems: 1, maxItems: 2 }),
  set: list(text, { 'x-kubernetes-list-type': 'set' }),
  numbers: list({ type: 'integer' }, { 'x-kubernetes-list-type': 'set' }),
  keyed: list(object({ name: text, port: { type: 'integer', default: 80 }, note: text }, { required: ['name'] }), {
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['name', 'port'],
  }),
  items: list(object({ a: { ...text, default: 'x' }, b: text })),
  map: { type: 'object', additionalProperties: { type: 'integer' }, minProperties: 1, maxProperties: 2 },
  mapOfObjects: { type: 'object', additionalProperties: object({ a: { ...text, default: 'x' } }) },
  anything: { 'x-kubernetes-preserve-unknown-fields': true },
  partly: object({ a: text, b: object({ c: text }) }, { 'x-kubernetes-preserve-unknown-fields': true }),
  embedded: object({ spec: object({ a: text }) }, { 'x-kubernetes-embedded-resource': true }),
  embeddedAny: {
    ...{ type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true },
  },
  needing: object({ a: text, b: text }, { required: ['a', 'b'] }),
  oneOf: object({ a: text, b: text }, { oneOf: [{ required: ['a'] }, { required: ['b'] }] }),
  anyOf: object({ a: text, b: text }, { anyOf: [{ required: ['a'] }, { required: ['b'] }] }),
  allOf: { ...text, allOf: [{ minLength: 2 }, { pattern: '^a' }] },
  not: { ...text, not: { enum: ['no'] } },
  date: { ...text, format: 'date' },
  dateTime: { ...text, format: 'date-time' },
  duration: { ...text, format: 'duration' },
  ipv4: { ...text, format: 'ipv4' },
  ipv6: { ...text, format: 'ipv6' },
  cidr: { ...text, format: 'cidr' },
  uuid: { ...text, format: 'uuid' },
  uuid4: { ...text, format: 'uuid4' },
  uri: { ...text, format: 'uri' },
  email: { ...text, format: 'email' },
  hostname: { ...text, format: 'hostname' },
  byte: { ...text, format: 'byte' },
  mac: { ...text, format: 'mac' },
  password: { ...text, format: 'password' },
  quantity: { ...text, format: 'quantity' },
}
const schema = object({ spec: object(properties), status: object({ phase: text }) })

const values: readonly [string, JsonValue][] = [
  ['nothing', {}],
  ['a text for an object', 'x'],
  ['null for an object', null],
  ['a number as text', { text: 3 }],
  ['a text too short and one too long', { short: 'a', matching: 'A1' }],
  ['a long text', { short: 'abcde' }],
  ['runes, not bytes', { short: 'äöüß' }],
  ['wide runes', { short: '😀😀😀😀😀' }],
  ['an enum', { chosen: 'c', chosenNumber: 3 }],
  ['an enum, empty', { chosen: '' }],
  ['a float for an integer', { whole: 1.5 }],
  ['a float without a fraction', { whole: 1.0, number: 2.0 }],
  ['too large integers', { int32: 2147483648, int64: 9007199254740992 }],
  ['a number with an exponent', { whole: 1e3, number: 1e21 }],
  ['bounds', { bounded: 2, open: 3 }],
  ['upper bounds', { bounded: 6, open: 5 }],
  ['multiples', { multiple: 0.7 }],
  ['good multiples', { multiple: 1.5 }],
  ['a text for a flag', { flag: 'true' }],
  ['int-or-string both ways', { either: '50%' }],
  ['int-or-string as neither', { either: true }],
  ['int-or-string as a float', { either: 1.5 }],
  ['nulls', { text: null, nullable: null, defaulted: null, nullableDefault: null, whole: null, list: null }],
  ['a null within a list', { list: [null] }],
  ['a null within a map', { map: { a: null } }],
  ['defaults of an inner object', { inner: {}, defaults: { b: 1 } }],
  ['defaults in items', { items: [{}, { b: 'x' }], mapOfObjects: { k: {} } }],
  ['an empty list', { list: [] }],
  ['a long list', { list: ['a', 'b', 'c'] }],
  ['a set with doubles', { set: ['a', 'b', 'a'], numbers: [1, 1, 2] }],
  ['a keyed list with doubles', { keyed: [{ name: 'a' }, { name: 'a', port: 80 }, { name: 'a', port: 81 }] }],
  ['a keyed list without a key', { keyed: [{ port: 1 }] }],
  ['integers that need more than 64 bits', { int64: 1e20, keyed: [{ name: 'a', port: 1e20 }], map: { a: -1e20 } }],
  ['an empty map', { map: {} }],
  ['a large map', { map: { a: 1, b: 2, c: 3 } }],
  ['a map of the wrong type', { map: { a: 'x' } }],
  ['unknown fields', { unknown: 1, inner: { z: 1 }, items: [{ z: 1, b: 'y' }], mapOfObjects: { k: { z: 1 } } }],
  ['preserved fields', { anything: { a: [1, { b: null }] }, partly: { a: 'x', z: 1, b: { c: 'x', y: 1 } } }],
  ['preserved scalars', { anything: 3 }],
  ['an embedded resource without a kind', { embedded: { spec: { a: 'x' } } }],
  [
    'an embedded resource',
    {
      embedded: {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'x', labels: { a: 'b' }, unknown: 1, creationTimestamp: null },
        spec: { a: 'x', z: 1 },
        z: 1,
      },
    },
  ],
  [
    'an invalid embedded resource',
    {
      embedded: { apiVersion: 'a/b/c', kind: 'no kind', metadata: { name: 'UPPER', labels: { a: 1 } } },
      embeddedAny: { apiVersion: '', kind: '', metadata: { namespace: 'A_B', labels: { '-': '!' } } },
    },
  ],
  ['required fields', { needing: {} }],
  ['oneOf none', { oneOf: {} }],
  ['oneOf both', { oneOf: { a: 'x', b: 'y' } }],
  ['anyOf none', { anyOf: {} }],
  ['allOf', { allOf: 'b' }],
  ['not', { not: 'no' }],
  ...(
    [
      ['date', ['2024-02-30', '2024-02-29', 'x']],
      ['dateTime', ['2024-02-29T12:00:00Z', '2024-02-29', '2024-02-29T12:00:00+02:00', '2024-02-29t12:00:00.123z']],
      ['duration', ['1h', '1 day', '22 ns', '1m30s', 'x', '', '5']],
      ['ipv4', ['1.2.3.4', '1.2.3', '01.2.3.4', '::1']],
      ['ipv6', ['::1', '1.2.3.4', 'x', '::ffff:1.2.3.4']],
      ['cidr', ['10.0.0.0/8', '10.0.0.1', '10.0.0.1/8', '::/0', '10.0.0.0/33']],
      ['uuid', ['4f4c1b4e-8a0b-11ee-b9d1-0242ac120002', 'x', '4F4C1B4E8A0B11EEB9D10242AC120002']],
      ['uuid4', ['4f4c1b4e-8a0b-11ee-b9d1-0242ac120002', '4f4c1b4e-8a0b-41ee-b9d1-0242ac120002']],
      ['uri', ['https://a.b/c', 'a', '', '://', '/x']],
      ['email', ['a@b.c', 'a', 'A <a@b.c>']],
      ['hostname', ['a.b', '-a', 'a_b', 'xn--a']],
      ['byte', ['YQ==', 'YQ', '!', '']],
      ['mac', ['01:23:45:67:89:ab', 'x']],
      ['password', ['secret']],
      ['quantity', ['1Gi', 'x']],
    ] as [string, string[]][]
  ).flatMap(([format, texts]) =>
    texts.map((value): [string, JsonValue] => [`format ${format} "${value}"`, { [format]: value }]),
  ),
]

const word = 'thing'
const path = (name = ''): string => objectsPath(word, name)
const thing = (name: string, spec: JsonValue, rest: JsonObject = {}): JsonObject =>
  sampleObject(word, name, { spec, ...rest })
const create = (session: Session, body: unknown, query = ''): Promise<unknown> =>
  session.send('POST', path() + query, { body })

export const objectRows: readonly Row[] = [
  row('objects: their definition', (session) => install(session, { word, schema })),
  ...values.map(([about, spec], index) =>
    row(`object: ${about}`, async (session) => {
      await create(session, thing(`value-${index}`, spec))
    }),
  ),
  row('object: unknown fields, strict', async (session) => {
    const spec = { unknown: 1, inner: { z: 1 }, items: [{ z: 1 }], partly: { b: { y: 1 } } }
    await create(session, thing('strict', spec, { extra: 1 }), '?fieldValidation=Strict')
    await create(session, thing('strict', spec, { extra: 1 }), '?fieldValidation=Ignore&dryRun=All')
    await create(session, thing('strict', {}, { metadata: { name: 'strict', unknown: 1 } }), '?fieldValidation=Strict')
    await create(session, thing('strict', {}, { metadata: { name: 'strict', unknown: 1, labels: { a: 1 } } }))
  }),
  row('object: fields twice', async (session) => {
    const body = `{"apiVersion":"thing.$ID.example.com/v1","kind":"Thing","metadata":{"name":"twice","name":"twice"},"spec":{"text":"a","text":"b","anything":{"x":1,"x":2}}}`
    for (const query of ['?dryRun=All', '?dryRun=All&fieldValidation=Strict', '?dryRun=All&fieldValidation=Ignore'])
      await create(session, body, query)
  }),
  ...(
    [
      ['another kind', { ...thing('x', {}), kind: 'Other' }],
      ['another version', { ...thing('x', {}), apiVersion: 'other.example.com/v1' }],
      ['no apiVersion', { kind: 'Thing', metadata: { name: 'x' } }],
      ['no metadata', { apiVersion: 'thing.$ID.example.com/v1', kind: 'Thing' }],
      ['metadata that is not an object', { ...thing('x', {}), metadata: 'x' }],
      ['no name', { ...thing('x', {}), metadata: {} }],
      ['an invalid name', thing('No_Name', {})],
      ['a generated name', { ...thing('x', {}), metadata: { generateName: 'gen-' } }],
      ['another namespace', { ...thing('x', {}), metadata: { name: 'x', namespace: 'other' } }],
      ['invalid labels', { ...thing('x', {}), metadata: { name: 'x', labels: { 'a b': 'c d', ok: '-' } } }],
      ['labels of the wrong type', { ...thing('x', {}), metadata: { name: 'x', labels: { a: 1 } } }],
      ['invalid annotations', { ...thing('x', {}), metadata: { name: 'x', annotations: { 'A b': 'c' } } }],
      [
        'finalizers without a domain',
        { ...thing('fin', {}), metadata: { name: 'fin', finalizers: ['abc', 'a/b', 'a b'] } },
      ],
      [
        'invalid owners',
        {
          ...thing('own', {}),
          metadata: { name: 'own', ownerReferences: [{ apiVersion: 'v1', kind: '', name: '', uid: '' }] },
        },
      ],
      [
        'an owner with another version format',
        {
          ...thing('own', {}),
          metadata: { name: 'own', ownerReferences: [{ apiVersion: 'a/b/c', kind: 'X', name: 'x', uid: 'x' }] },
        },
      ],
      [
        'an event as an owner',
        {
          ...thing('own', {}),
          metadata: { name: 'own', ownerReferences: [{ apiVersion: 'v1', kind: 'Event', name: 'x', uid: 'x' }] },
        },
      ],
      [
        'two controllers',
        {
          ...thing('own', {}),
          metadata: {
            name: 'own',
            ownerReferences: ['a', 'b'].map((name) => ({
              apiVersion: 'v1',
              kind: 'Pod',
              name,
              uid: name,
              controller: true,
            })),
          },
        },
      ],
      [
        'fields set by the server',
        {
          ...thing('mine', {}),
          metadata: {
            name: 'mine',
            uid: 'x',
            generation: 7,
            creationTimestamp: '2001-01-01T00:00:00Z',
            deletionTimestamp: '2001-01-01T00:00:00Z',
            selfLink: '/x',
          },
        },
      ],
    ] as [string, JsonObject][]
  ).map(([about, body]) =>
    row(`object with ${about}`, async (session) => {
      await create(session, body, '?dryRun=All')
    }),
  ),
  row('object: created twice, read, listed, deleted', async (session) => {
    await create(session, thing('life', { text: 'a' }))
    await create(session, thing('life', { text: 'a' }))
    await session.get(path('life'))
    await session.get(path('absent'))
    await session.get(`${path()}?fieldSelector=metadata.name%3Dlife`)
    await session.get(`${path()}?fieldSelector=spec.text%3Da`)
    await session.get(`${path()}?labelSelector=a%3Db`)
    await session.delete(path('life'))
    await session.delete(path('life'))
  }),
  row('object: PUT rules', async (session) => {
    await create(session, thing('put', { text: 'a' }))
    await session.send('PUT', path('put'), { body: thing('put', { text: 'b' }) })
    await session.send('PUT', path('put'), { body: thing('other', { text: 'b' }) })
    await session.send('PUT', path('absent'), { body: thing('absent', { text: 'b' }) })
    await session.change(path('put'), (one) => Object.assign(one, { spec: { text: 'b' } }))
    await session.change(path('put'), (one) => Object.assign(one, { spec: { text: 'b' } }))
    await session.change(path('put'), (one) => Object.assign(one['metadata'] as JsonObject, { labels: { a: 'b' } }))
    await session.change(path('put'), (one) => Object.assign(one['metadata'] as JsonObject, { resourceVersion: '1' }))
    await session.change(path('put'), (one) => Object.assign(one['metadata'] as JsonObject, { name: 'x' }))
    await session.change(path('put'), (one) => Object.assign(one['metadata'] as JsonObject, { namespace: 'x' }))
    await session.change(path('put'), (one) =>
      Object.assign(one['metadata'] as JsonObject, { creationTimestamp: '2001-01-01T00:00:00Z', generation: 99 }),
    )
    await session.change(path('put'), (one) => Object.assign(one, { status: { phase: 'x' } }))
    await session.change(path('put'), (one) => Object.assign(one, { spec: { text: 3 } }))
  }),
  row('object: patches', async (session) => {
    await create(session, thing('patch', { text: 'a', items: [{ b: 'x' }] }))
    await session.patch(path('patch'), { spec: { text: 'b', unknown: 1 } })
    await session.patch(path('patch'), { spec: { unknown: 1 } }, 'merge', { headers: {} })
    await session.patch(path('patch'), { spec: { text: null } })
    await session.patch(path('patch'), { spec: { text: 5 } })
    await session.patch(path('patch'), { kind: 'Other' })
    await session.patch(path('patch'), [{ op: 'add', path: '/spec/items/-', value: { b: 'y' } }], 'json')
    await session.patch(path('absent'), { spec: {} })
    await session.patch(path('patch'), { metadata: { resourceVersion: '1' } })
    await session.patch(path('patch'), { metadata: { finalizers: ['example.com/x'] } })
    await session.delete(path('patch'))
    await session.patch(path('patch'), { metadata: { finalizers: ['example.com/x', 'example.com/y'] } })
    await session.patch(path('patch'), { spec: { text: 'while ending' } })
    await session.patch(path('patch'), { metadata: { deletionTimestamp: null } })
    await session.patch(path('patch'), { metadata: { finalizers: null } })
    await session.get(path('patch'))
  }),
  row('object: no status endpoint without the subresource', async (session) => {
    await create(session, thing('nostatus', { text: 'a' }))
    await session.get(`${path('nostatus')}/status`)
    await session.patch(`${path('nostatus')}/status`, { status: { phase: 'x' } })
    await session.get(`${path('nostatus')}/scale`)
    await session.get(`${path('nostatus')}/unknown`)
    await session.patch(path('nostatus'), { status: { phase: 'x' } })
  }),
  row('object: invalid values may stay unchanged', async (session) => {
    const ratchet = 'ratchet'
    const at = (name = ''): string => objectsPath(ratchet, name)
    const loose = object({
      spec: object({
        text,
        list: list(text),
        items: list(object({ a: text, b: text })),
        keyed: list(object({ k: text, v: text }, { required: ['k'] }), {
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['k'],
        }),
        map: { type: 'object', additionalProperties: text },
        inner: object({ a: text, b: text }),
        either: object({ a: text, b: text }),
      }),
    })
    const strict = object({
      spec: object(
        {
          text: { ...text, minLength: 5, pattern: '^a' },
          list: list(text, { maxItems: 1 }),
          items: list(object({ a: { ...text, enum: ['x'] }, b: text })),
          keyed: list(object({ k: text, v: { ...text, maxLength: 1 } }, { required: ['k'] }), {
            'x-kubernetes-list-type': 'map',
            'x-kubernetes-list-map-keys': ['k'],
          }),
          map: { type: 'object', additionalProperties: { ...text, maxLength: 1 }, maxProperties: 1 },
          inner: object({ a: text, b: text }, { required: ['c'] }),
          either: object({ a: text, b: text }, { oneOf: [{ required: ['a'] }, { required: ['b'] }] }),
        },
        { required: ['needed'] },
      ),
    })
    await install(session, { word: ratchet, schema: loose })
    const spec = {
      text: 'no',
      list: ['a', 'b'],
      items: [{ a: 'y', b: 'z' }],
      keyed: [
        { k: '1', v: 'long' },
        { k: '2', v: 'long' },
      ],
      map: { a: 'long', b: 'long' },
      inner: { a: 'x' },
      either: {},
    }
    await session.send('POST', at(), { body: sampleObject(ratchet, 'one', { spec }) })
    await session.change(
      crdPath(ratchet),
      (crd) => {
        const versions = (crd['spec'] as JsonObject)['versions'] as JsonObject[]
        if (versions[0] !== undefined) versions[0]['schema'] = { openAPIV3Schema: strict }
      },
      { quiet: true },
    )
    // The new schema is active once it refuses a new object.
    await session.untilRefused(at(), sampleObject(ratchet, 'two', { spec }))
    await session.send('POST', at(), { body: sampleObject(ratchet, 'two', { spec }) })
    await session.patch(at('one'), { metadata: { labels: { a: 'b' } } })
    const changes: JsonObject[] = [
      { text: 'nope' },
      { text: 'abcde' },
      { list: ['a', 'b', 'c'] },
      { list: ['b', 'a'] },
      { list: ['b'] },
      { items: [{ a: 'y', b: 'changed' }] },
      { items: [{ a: 'y', b: 'z' }, { a: 'y' }] },
      {
        keyed: [
          { k: '2', v: 'long' },
          { k: '1', v: 'long' },
          { k: '3', v: 'x' },
        ],
      },
      {
        keyed: [
          { k: '2', v: 'longer' },
          { k: '1', v: 'long' },
        ],
      },
      { map: { a: 'long', b: 'long', c: 'x' } },
      { map: { a: 'other', b: 'long' } },
      { map: { a: 'long', b: null } },
      { inner: { a: 'x', b: 'y' } },
      { inner: { a: 'z' } },
      { either: { a: 'x', b: 'x' } },
    ]
    for (const change of changes) await session.patch(`${at('one')}?dryRun=All`, { spec: change })
  }),
]
