// Definitions by which a tenant could make others compute: regular expressions, CEL, schemas, many kinds, webhooks that
// hang.
import type { Sent } from '#test/long/amplifiers/measured-process.ts'

/** Requests of one tenant, in order, and what they may be answered. */
export interface Story {
  readonly title: string
  readonly requests: readonly Asked[]
  /** How many of the requests are under way at once. Default 1. */
  readonly atOnce?: number
}

export interface Asked extends Sent {
  /** Statuses that are right: served, or refused with a reason. */
  readonly expected: readonly number[]
}

type Schema = Readonly<Record<string, unknown>>

const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const maps = '/api/v1/namespaces/default/configmaps'
const admission = '/apis/admissionregistration.k8s.io/v1'
const served = [200, 201]
const refused = [422]
const discoveryForm = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
const many = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i))

function definition(plural: string, spec: Schema): object {
  const group = `${plural}.hostile.example`
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec } } }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { plural, singular: plural, kind: `K${plural}`, listKind: `K${plural}List` },
      versions: [{ name: 'v1', served: true, storage: true, schema }],
    },
  }
}

const define = (plural: string, spec: Schema, expected = served): Asked => ({
  ...{ method: 'POST', path: crds, body: definition(plural, spec), expected },
})
const create = (plural: string, spec: unknown, expected = served): Asked => ({
  ...{ method: 'POST', path: `/apis/${plural}.hostile.example/v1/namespaces/default/${plural}`, expected },
  body: { apiVersion: `${plural}.hostile.example/v1`, kind: `K${plural}`, metadata: { name: 'one' }, spec },
})
const text = (more: Schema): Schema => ({ type: 'string', ...more })
const rule = (expression: string): Schema => ({ 'x-kubernetes-validations': [{ rule: expression }] })

/** Patterns on which a matcher that backtracks never ends, against half a megabyte. */
const badPatterns = ['^(a+)+$', '^(a|aa)+$', '^(a*)*b$', '^(.*a){20}$', '^(a?){30}a{30}$']
const longText = `${'a'.repeat(500_000)}!`
const regularExpressions: Story = {
  title: 'regular expressions that backtrack, in schemas and in CEL',
  requests: [
    ...badPatterns.flatMap((pattern, i) => [
      define(`pattern${i}`, text({ pattern })),
      create(`pattern${i}`, longText, [413, 422]),
    ]),
    define('counted', text({ pattern: '^((a{1,100}){1,100}){1,100}$' }), refused),
    define('matched', text({ maxLength: 100_000, ...rule(`self.matches('^(a+)+$')`) })),
    create('matched', longText.slice(-100_000), refused),
  ],
}

const nestedLists = (depth: number): Schema =>
  depth === 0 ? { type: 'integer' } : { type: 'array', items: nestedLists(depth - 1) }
/** A rule that visits every combination of `depth` items of the list. */
const pairs = (list: string, depth: number): string =>
  depth === 0 ? 'true' : `${list}.all(x${depth}, ${pairs(list, depth - 1)})`
const doubled = (count: number) => [
  { name: 'v0', expression: `'xxxxxxxxxxxxxxxx'` },
  ...many(count, (i) => ({ name: `v${i + 1}`, expression: `variables.v${i} + variables.v${i}` })),
]

function policy(name: string, spec: object, expected = served): Asked[] {
  const label = { matchLabels: { policy: name } }
  const rules = [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['configmaps'] }]
  const matchConstraints = { resourceRules: rules, objectSelector: label }
  const bound = { policyName: name, validationActions: ['Deny'] }
  return [
    {
      ...{ method: 'POST', path: `${admission}/validatingadmissionpolicies`, expected },
      body: { metadata: { name }, spec: { failurePolicy: 'Fail', matchConstraints, ...spec } },
    },
    {
      ...{ method: 'POST', path: `${admission}/validatingadmissionpolicybindings`, expected: served },
      body: { metadata: { name }, spec: bound },
    },
    {
      ...{ method: 'POST', path: maps, expected: refused },
      body: {
        metadata: { name: `of-${name}`, labels: { policy: name } },
        data: Object.fromEntries(many(5000, (i) => [`key-${i}`, 'v'])),
      },
    },
  ]
}

const celExpressions: Story = {
  title: 'CEL that costs more than anybody has',
  requests: [
    define('unbounded', { type: 'array', items: { type: 'integer' }, ...rule(pairs('self', 4)) }, refused),
    define('nested', { ...nestedLists(4), ...rule(pairs('self', 3)) }, refused),
    define('parentheses', text(rule(`${'('.repeat(10_000)}true${')'.repeat(10_000)}`)), refused),
    define('sum', text(rule(`${'1 + '.repeat(40_000)}1 > 0`)), [...served, ...refused]),
    ...policy('pairs', { validations: [{ expression: pairs('object.data', 3) }] }),
    ...policy('doubled', { variables: doubled(40), validations: [{ expression: 'variables.v40 == ""' }] }),
    ...policy('regular', {
      validations: [{ expression: `object.data.all(k, object.data.all(l, (k + l).matches('^(.*a){20}$')))` }],
    }),
  ],
}

const object = (properties: Schema, more: Schema = {}): Schema => ({ type: 'object', properties, ...more })
const deep = (depth: number, leaf: Schema): Schema => (depth === 0 ? leaf : object({ a: deep(depth - 1, leaf) }))
/** Each level has two branches that must be tried both. */
const branches = (depth: number): Schema =>
  depth === 0 ? { maxLength: 3 } : { anyOf: [branches(depth - 1), branches(depth - 1)] }
/** Each default has two objects that have defaults. */
const defaults = (depth: number): Schema =>
  depth === 0
    ? text({ default: 'x'.repeat(100) })
    : object({ a: defaults(depth - 1), b: defaults(depth - 1) }, { default: {} })
const fields = (count: number, one: (index: number) => Schema): Schema =>
  object(Object.fromEntries(many(count, (i) => [`field${i}`, one(i)])))

const schemas: Story = {
  title: 'schemas that multiply',
  requests: [
    define('depth', deep(2000, text({})), [400]),
    define('deep', deep(400, text({}))),
    define('branches', text(branches(13))),
    create('branches', 'too long', refused),
    define('defaults', defaults(12)),
    create('defaults', {}, [201, 413, 422]),
    define(
      'wide',
      fields(8000, (i) => text({ description: `field ${i} of many`, maxLength: 10 })),
    ),
    create('wide', Object.fromEntries(many(8000, (i) => [`field${i}`, 'longer than ten'])), refused),
    define('choices', { type: 'array', items: { type: 'integer', oneOf: many(2000, (i) => ({ minimum: i })) } }),
    create(
      'choices',
      many(20_000, () => 5000),
      [413, 422],
    ),
    { method: 'GET', path: '/openapi/v2', expected: served },
  ],
}

/** A kind of ordinary size: some sixty fields. */
const ordinary = fields(10, () => fields(5, () => text({ description: 'what this field is for', maxLength: 63 })))
const definitionCount = 1000

const manyKinds: readonly Story[] = [
  {
    title: `${definitionCount} CustomResourceDefinitions in one logical cluster`,
    requests: many(definitionCount, (i) => define(`many${i}`, ordinary)),
    atOnce: 8,
  },
  {
    title: 'their objects, discovery and OpenAPI documents',
    requests: [
      ...many(definitionCount / 10, (i) => create(`many${i * 10}`, {})),
      { method: 'GET', path: '/apis', headers: { accept: discoveryForm }, expected: served },
      { method: 'GET', path: '/openapi/v2', expected: served },
      { method: 'GET', path: '/openapi/v3', expected: served },
      { method: 'GET', path: '/openapi/v3/apis/many7.hostile.example/v1', expected: served },
    ],
  },
]

/** `at` is the clientConfig of a webhook at this path of the test's server. */
export type ClientConfigAt = (path: string) => object

function hangingWebhooks(at: ClientConfigAt): Story {
  const rules = [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }]
  const webhooks = many(100, (i) => ({
    ...{ name: `hook${i}.hostile.example`, clientConfig: at(i === 0 ? '/allow' : `/hang/${i}`), rules },
    ...{ sideEffects: 'None', admissionReviewVersions: ['v1'], timeoutSeconds: 5, failurePolicy: 'Ignore' },
    objectSelector: { matchLabels: { hooks: 'all' } },
  }))
  const map = (name: string, hooks: string): Asked => ({
    ...{ method: 'POST', path: maps, body: { metadata: { name, labels: { hooks } } }, expected: [201, 429, 500] },
  })
  return {
    title: '100 webhooks of which 99 hang, 20 objects that all are asked about and 200 of which none is',
    requests: [
      {
        ...{ method: 'POST', path: `${admission}/validatingwebhookconfigurations`, expected: served },
        body: { metadata: { name: 'all' }, webhooks },
      },
      ...many(20, (i) => map(`stuck-${i}`, 'all')),
      ...many(200, (i) => ({ ...map(`free-${i}`, 'none'), expected: served })),
    ],
    atOnce: 32,
  }
}

/** All stories, in the order in which they are told to one logical cluster. */
export const stories = (at: ClientConfigAt): readonly Story[] => [
  ...[regularExpressions, celExpressions, schemas],
  ...manyKinds,
  hangingWebhooks(at),
]
