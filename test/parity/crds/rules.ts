// Validation rules (x-kubernetes-validations): definitions that are refused for them, and objects that rules look at.
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { row, type Row } from '#test/parity/support/compare-rows.ts'
import { crdPath, crdsPath, install, objectsPath, sampleCrd, sampleObject } from './sample-crd.ts'

const text: JsonObject = { type: 'string', maxLength: 20 }
const whole: JsonObject = { type: 'integer' }
const object = (properties: JsonObject, rest: JsonObject = {}): JsonObject => ({ type: 'object', properties, ...rest })
const list = (items: JsonObject, rest: JsonObject = {}): JsonObject => ({ type: 'array', items, ...rest })
const map = (values: JsonObject, rest: JsonObject = {}): JsonObject => ({
  ...{ type: 'object', additionalProperties: values },
  ...rest,
})
const rules = (...all: (string | JsonObject)[]): JsonObject => ({
  'x-kubernetes-validations': all.map((rule) => (typeof rule === 'string' ? { rule } : rule)),
})
const keyed = { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] }

const spec = (properties: JsonObject, rest: JsonObject = {}): JsonObject => object({ spec: object(properties, rest) })

/** Definitions, answered on a dry run. None of the messages names the type of self, whose name is random upstream. */
const schemas: readonly (readonly [string, JsonObject])[] = [
  ['a rule', spec({ a: text }, rules('self.a != "x"'))],
  ['a rule that does not parse', spec({ a: text }, rules('self.a ==', 'self.a == "b" &&& true'))],
  ['an unknown function and field', spec({ a: text }, rules('self.a.foo()', 'unknown == 1'))],
  ['a rule that is no bool', spec({ a: text }, rules('self.a'))],
  ['an invalid pattern in a rule', spec({ a: text }, rules('self.a.matches("[")'))],
  ['a library of the next version', spec({ a: list(whole, { maxItems: 9 }) }, rules('lists.range(3) == [0, 1, 2]'))],
  ['messageExpressions that are wrong', spec({ a: text }, rules({ rule: 'true', messageExpression: '1' }))],
  [
    'all members of a rule',
    spec(
      { a: text },
      rules({
        ...{ rule: 'self.a +', message: 'no', messageExpression: 'self.a +', reason: 'FieldValueForbidden' },
        ...{ fieldPath: '.a', optionalOldSelf: true },
      }),
    ),
  ],
  ['a messageExpression that does not parse', spec({ a: text }, rules({ rule: 'true', messageExpression: '"a" +' }))],
  ['old values of a list without keys', spec({ a: list({ ...text, ...rules('self == oldSelf') }) })],
  [
    'old values of a list with keys',
    spec({
      a: list(object({ name: text, v: { ...text, ...rules('self == oldSelf') } }, { required: ['name'] }), {
        ...keyed,
        maxItems: 10,
      }),
    }),
  ],
  [
    'old values of an atomic map',
    spec({ a: object({ b: { ...text, ...rules('self == oldSelf') } }, { 'x-kubernetes-map-type': 'atomic' }) }),
  ],
  ['optionalOldSelf without oldSelf', spec({ a: text }, rules({ rule: 'self.a != ""', optionalOldSelf: true }))],
  ['optionalOldSelf', spec({ a: text }, rules({ rule: 'oldSelf.hasValue() || self.a != ""', optionalOldSelf: true }))],
  [
    'a rule that may cost too much',
    spec({ a: list({ type: 'string' }) }, rules('self.a.all(x, self.a.all(y, x == y))')),
  ],
  [
    'a rule that costs a little too much',
    spec(
      { a: list({ type: 'string', maxLength: 500 }, { maxItems: 200 }) },
      rules('self.a.all(x, self.a.all(y, x == y))'),
    ),
  ],
  ['a rule that runs too often', spec({ a: list({ type: 'string', ...rules('self.contains("a")') }) })],
  [
    'a rule within maps and lists',
    spec({ a: map(list({ ...text, ...rules('self.contains("a")') }, { maxItems: 3 }), { maxProperties: 3 }) }),
  ],
  [
    'many rules that cost too much',
    spec({
      a: list(text, {
        maxItems: 100,
        ...rules(...Array.from({ length: 30 }, () => 'self.all(x, self.all(y, x != y))')),
      }),
      b: list({ type: 'string' }, rules('self.all(x, x.matches("a+"))')),
    }),
  ],
  [
    'an expensive message',
    spec(
      { a: list({ type: 'string' }) },
      rules({ rule: 'true', messageExpression: 'self.a.map(x, self.a.map(y, x + y)[0])[0]' }),
    ),
  ],
  ['a rule where nothing is known', spec({ a: { 'x-kubernetes-preserve-unknown-fields': true, ...rules('true') } })],
  [
    'a rule of int-or-string',
    spec({ a: { 'x-kubernetes-int-or-string': true, ...rules('self == 5 || self == "5"') } }),
  ],
  ['a rule of a field without a name', spec({ 'a b': { ...text, ...rules('self == "c"') } })],
  ['a rule beside another mistake', spec({ a: { ...text, ...rules('wrong('), 'x-kubernetes-list-type': 'set' } })],
  [
    'field paths',
    spec(
      { a: object({ b: text }), m: map(text) },
      rules(
        ...['.a.b', '.c', 'a', ".m['x']", '.m.x', '.a[b]', ' ', ".m['\\x']", '.a\n'].map((fieldPath) => ({
          rule: 'true',
          fieldPath,
        })),
      ),
    ),
  ],
  ['a default that a rule refuses', spec({ a: { ...text, default: 'no', ...rules('self != "no"') } })],
  ['a default that a rule accepts', spec({ a: { ...text, default: 'yes', ...rules('self != "no"') } })],
  ['a default that must not change', spec({ a: { ...text, default: 'a', ...rules('self == oldSelf') } })],
  [
    'rules of the root',
    object({ spec: object({ a: text }) }, rules('self.metadata.name.startsWith("a") && self.kind != ""')),
  ],
  [
    'rules about labels',
    object({ spec: object({}) }, rules('self.metadata.labels["a"] == "b"', 'has(self.metadata.namespace)')),
  ],
  ['rules within allOf', spec({ a: { ...text, allOf: [{ minLength: 2 }] } }, rules('self.a != ""'))],
  [
    'rules of an embedded resource',
    spec({
      t: object(
        { spec: object({}) },
        { 'x-kubernetes-embedded-resource': true, ...rules('self.metadata.name != "" && self.kind == "Pod"') },
      ),
    }),
  ],
]

const checked = object(
  {
    spec: object(
      {
        a: { ...text, ...rules({ rule: 'self != "bad"', message: 'a must not be bad' }) },
        b: { ...text, ...rules('self.startsWith("b")') },
        min: whole,
        max: whole,
        fixed: { ...text, ...rules({ rule: 'self == oldSelf', message: 'fixed must not change' }) },
        once: { ...text, ...rules({ rule: 'oldSelf.hasValue() || self == "first"', optionalOldSelf: true }) },
        list: list({ ...text, ...rules('self != "no"') }, { maxItems: 10 }),
        keyed: list(
          object(
            { name: text, v: { ...text, ...rules('self == oldSelf') }, w: { ...text, ...rules('self != "no"') } },
            { required: ['name'] },
          ),
          { ...keyed, maxItems: 10 },
        ),
        map: map({ ...text, ...rules('self.size() < 3') }, { maxProperties: 5 }),
        either: { 'x-kubernetes-int-or-string': true, ...rules('self > 3') },
        when: { type: 'string', format: 'date-time', ...rules('self < timestamp("2030-01-01T00:00:00Z")') },
        nullable: { ...text, nullable: true, ...rules('self == "x"') },
        reasons: object(
          { x: text },
          rules(
            ...['FieldValueForbidden', 'FieldValueRequired', 'FieldValueDuplicate', 'FieldValueInvalid'].map(
              (reason) => ({
                ...{ rule: 'self.x != "fail"', message: 'it failed', reason, fieldPath: '.x' },
              }),
            ),
          ),
        ),
        messages: object(
          { x: text },
          rules(
            { rule: 'self.x != "fail"', messageExpression: '"x is " + self.x' },
            { rule: 'self.x != "fail"', messageExpression: '"a\\nb"' },
            { rule: 'self.x != "fail"', messageExpression: '"  "', message: 'the message' },
            { rule: 'self.x != "fail"', messageExpression: '1 / (self.x.size() - 4) == 0 ? "a" : "b"' },
          ),
        ),
        dyn: { 'x-kubernetes-preserve-unknown-fields': true, type: 'object' },
      },
      rules(
        {
          rule: '!has(self.min) || !has(self.max) || self.min <= self.max',
          messageExpression: '"min is above max" + (self.max == 2 ? " 2" : "")',
        },
        '!has(self.min) || 10 / self.min > 1',
        '!has(self.keyed) || self.keyed.all(k, k.name != "a" || k.v == "1")',
      ),
    ),
    status: object({ phase: { ...text, ...rules('self in ["On", "Off"]') } }),
  },
  rules('self.metadata.name != "refused"'),
)

const values: readonly (readonly [string, JsonObject])[] = [
  ['nothing', {}],
  ['a message', { a: 'bad' }],
  ['no message', { b: 'c' }],
  ['a message that is computed', { min: 3, max: 2 }],
  ['a division by zero', { min: 0 }],
  ['optional old values', { once: 'second' }],
  ['items', { list: ['yes', 'no', 'no'] }],
  ['values of a map', { map: { a: 'long' } }],
  ['int-or-string as text', { either: 'x' }],
  ['int-or-string as a number', { either: 3 }],
  ['a time', { when: '2040-01-01T00:00:00Z' }],
  ['null', { nullable: null }],
  ['reasons', { reasons: { x: 'fail' } }],
  ['computed messages', { messages: { x: 'fail' } }],
  ['a missing key', { keyed: [{ name: 'a' }] }],
  ['another mistake', { a: 'x'.repeat(30), b: 'c' }],
  ['another type', { a: 3, b: 'c' }],
]

const before: JsonObject = {
  a: 'good',
  fixed: 'one',
  once: 'first',
  list: ['yes'],
  keyed: [
    { name: 'x', v: '1', w: 'a' },
    { name: 'y', v: '2', w: 'a' },
  ],
}
const changes: readonly (readonly [string, JsonObject])[] = [
  ['a fixed field', { fixed: 'two' }],
  ['a fixed field, removed', { fixed: null }],
  ['a field that is free after creation', { once: 'other' }],
  [
    'an item with a key',
    {
      keyed: [
        { name: 'y', v: '3', w: 'a' },
        { name: 'x', v: '1', w: 'no' },
        { name: 'z', v: '0' },
      ],
    },
  ],
  ['a plain field', { a: 'bad' }],
]

/** Controllers of a real server set these a moment later. */
const settled = ['status', 'metadata.finalizers']
const word = 'ruled'
const loose = 'looser'

export const ruleRows: readonly Row[] = [
  ...schemas.map(([about, schema], i) =>
    row(`rules of a definition: ${about}`, async (session) => {
      const letter = 'abcdefghijklmnopqrstuvwxyz'.charAt(i % 26)
      const body = sampleCrd({ word: `rules${letter}${i > 25 ? 'z' : ''}`, schema })
      await session.send('POST', `${crdsPath}?dryRun=All`, { body, without: settled })
    }),
  ),
  row('rules of objects', async (session) => {
    await install(session, { word, schema: checked, version: { subresources: { status: {} } } })
    for (const [, value] of values)
      await session.send('POST', `${objectsPath(word)}?dryRun=All`, {
        body: sampleObject(word, 'one', { spec: value }),
      })
    await session.send('POST', `${objectsPath(word)}?dryRun=All`, { body: sampleObject(word, 'refused') })
    await session.send('POST', objectsPath(word), { body: sampleObject(word, 'one', { spec: before }) })
    for (const [, change] of changes) await session.patch(`${objectsPath(word, 'one')}?dryRun=All`, { spec: change })
    for (const phase of ['On', 'Broken'])
      await session.patch(`${objectsPath(word, 'one')}/status?dryRun=All`, { status: { phase } })
  }),
  row('rules that came later', async (session) => {
    const open = { ...text }
    const kept = list(object({ name: text, v: text }, { required: ['name'] }), { ...keyed, maxItems: 9 })
    await install(session, {
      word: loose,
      schema: spec({ a: open, l: list(text, { maxItems: 9 }), k: kept, m: map(text) }),
    })
    // One field per object: the order of several warnings is random upstream.
    const fields: JsonObject = {
      a: 'no',
      l: ['no', 'b'],
      k: [
        { name: 'a', v: 'no' },
        { name: 'b', v: 'c' },
      ],
      m: { x: 'no' },
    }
    for (const [name, value] of Object.entries(fields))
      await session.send('POST', objectsPath(loose), { body: sampleObject(loose, name, { spec: { [name]: value } }) })
    const not = { ...text, ...rules({ rule: 'self != "no"', message: 'not no' }) }
    const strict = spec({
      ...{ a: not, l: list(not, { maxItems: 9 }), m: map(not) },
      k: list(object({ name: text, v: not }, { required: ['name'] }), { ...keyed, maxItems: 9 }),
    })
    await session.change(
      crdPath(loose),
      (crd) => {
        const versions = (crd['spec'] as JsonObject)['versions'] as JsonObject[]
        if (versions[0] !== undefined) versions[0]['schema'] = { openAPIV3Schema: strict }
      },
      { quiet: true },
    )
    await session.untilRefused(objectsPath(loose), sampleObject(loose, 'two', { spec: { a: 'no' } }))
    const patches: readonly (readonly [string, JsonObject])[] = [
      ...Object.keys(fields).map((name) => [name, { metadata: { labels: { a: 'b' } } }] as const),
      ['a', { spec: { a: 'yes' } }],
      ['a', { spec: { m: { x: 'no' } } }],
      ['l', { spec: { l: ['no', 'b', 'c'] } }],
      [
        'k',
        {
          spec: {
            k: [
              { name: 'b', v: 'd' },
              { name: 'a', v: 'no' },
            ],
          },
        },
      ],
      ['m', { spec: { m: { y: 'x' } } }],
    ]
    for (const [name, patch] of patches) await session.patch(`${objectsPath(loose, name)}?dryRun=All`, patch)
  }),
]
