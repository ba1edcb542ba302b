// Definitions of custom resources that grow in every direction, their objects, and the documents that tell of them.
import type { Scenario, Step } from './scenario.ts'
import type { Sent } from './measured-process.ts'

const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
/** A definition that is deleted lives on for a while: each run has a group of its own. */
let runs = 0
const group = (): string => `r${runs}.amplified.example`
const name = (): string => `things.${group()}`
const things = (): string => `/apis/${group()}/v1/namespaces/default/things`
const tableAs = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }
const many = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i))
const fields = (count: number, make: (index: number) => unknown): object =>
  Object.fromEntries(many(count, (i) => [`f${i}`, make(i)]))
const object = (properties: object): object => ({ type: 'object', properties })

function crd(spec: object, { versions = 1, ...rest }: { versions?: number; [field: string]: unknown } = {}): object {
  return {
    metadata: { name: name() },
    spec: {
      group: group(),
      scope: 'Namespaced',
      names: { plural: 'things', singular: 'thing', kind: 'Thing', listKind: 'ThingList' },
      versions: many(versions, (i) => ({
        name: `v${i + 1}`,
        served: true,
        storage: i === 0,
        schema: { openAPIV3Schema: object({ spec }) },
        ...rest,
      })),
    },
  }
}

interface Grown {
  readonly title: string
  readonly largest?: number
  readonly crd: (n: number) => object
  /** `spec` of an object of it. */
  readonly spec: (n: number) => unknown
}

const like = { type: 'string', pattern: '^(a|b)*$', maxLength: 100 }
const nested = (depth: number, leaf: object): object => (depth === 0 ? leaf : object({ a: nested(depth - 1, leaf) }))
const nestedValue = (depth: number): unknown => (depth === 0 ? 'a' : { a: nestedValue(depth - 1) })

const grown: readonly Grown[] = [
  {
    title: 'n properties',
    crd: (n) => crd(object(fields(n, () => ({ type: 'string' })))),
    spec: (n) => fields(n, () => 'a'),
  },
  {
    title: 'n properties with defaults',
    crd: (n) => crd(object(fields(n, (i) => ({ type: 'string', default: `v${i}` })))),
    spec: () => ({}),
  },
  {
    title: 'n properties with patterns',
    crd: (n) => crd(object(fields(n, () => like))),
    spec: (n) => fields(n, () => 'ab'),
  },
  {
    title: 'a pattern of n alternatives',
    crd: (n) => crd({ type: 'string', pattern: many(n, (i) => `a${i}`).join('|') }),
    spec: () => 'z'.repeat(1000),
  },
  {
    title: 'a pattern against a text of n times 64 characters',
    crd: () => crd({ type: 'string', pattern: '^(a|aa)+b(c?){20}$' }),
    spec: (n) => 'a'.repeat(n * 64),
  },
  {
    title: 'an enum of n values, a list of n of them',
    crd: (n) => crd({ type: 'array', items: { type: 'string', enum: many(n, (i) => `v${i}`) } }),
    spec: (n) => many(n, () => `v${n - 1}`),
  },
  {
    title: 'n required fields, of which none is there',
    crd: (n) => crd({ ...object(fields(n, () => ({ type: 'string' }))), required: many(n, (i) => `f${i}`) }),
    spec: () => ({}),
  },
  {
    title: 'allOf, anyOf, oneOf of n each',
    largest: 4096,
    crd: (n) => {
      const of = many(n, (i) => ({ maxLength: i + 1 }))
      return crd({ type: 'string', allOf: of, anyOf: of, oneOf: of })
    },
    spec: () => 'abc',
  },
  {
    title: 'a set of n texts',
    crd: () => crd({ type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } }),
    spec: (n) => many(n, (i) => `v${i}`),
  },
  {
    title: 'uniqueness of n objects by two keys',
    crd: () =>
      crd({
        type: 'array',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['a', 'b'],
        items: { ...object({ a: { type: 'string' }, b: { type: 'string' } }), required: ['a', 'b'] },
      }),
    spec: (n) => many(n, (i) => ({ a: `a${i}`, b: 'b' })),
  },
  {
    title: 'a schema n/16 levels deep',
    largest: 4096,
    crd: (n) => crd(nested(n / 16, { type: 'string' })),
    spec: (n) => nestedValue(n / 16),
  },
  {
    title: 'n unknown fields to prune',
    crd: () => crd(object({ a: { type: 'string' } })),
    spec: (n) => fields(n, () => 'a'),
  },
  {
    title: 'n unknown fields to keep',
    crd: () => crd({ type: 'object', 'x-kubernetes-preserve-unknown-fields': true }),
    spec: (n) => fields(n, () => 'a'),
  },
  {
    title: 'n/16 printer columns over a list of n',
    largest: 8192,
    crd: (n) =>
      crd(
        { type: 'array', items: { type: 'string' } },
        { additionalPrinterColumns: many(n / 16, (i) => ({ name: `C${i}`, type: 'string', jsonPath: '.spec[*]' })) },
      ),
    spec: (n) => many(n, () => 'a'),
  },
  { title: 'n/16 versions', largest: 8192, crd: (n) => crd({ type: 'string' }, { versions: n / 16 }), spec: () => 'a' },
  {
    title: '16 versions of n/16 properties',
    largest: 8192,
    crd: (n) => crd(object(fields(n / 16, () => like)), { versions: 16 }),
    spec: () => ({}),
  },
  {
    title: 'n rules of CEL',
    crd: (n) => crd({ type: 'string', 'x-kubernetes-validations': many(n, (i) => ({ rule: `self != 'v${i}'` })) }),
    spec: () => 'a',
  },
  {
    title: 'descriptions of n times 64 characters',
    crd: (n) => crd(object({ a: { type: 'string', description: 'd'.repeat(n * 64) } })),
    spec: () => ({ a: 'b' }),
  },
  {
    title: 'n selectable fields and short names',
    crd: (n) => {
      const made = crd(object(fields(n, () => ({ type: 'string' }))), {
        selectableFields: many(n, (i) => ({ jsonPath: `.spec.f${i}` })),
      }) as { spec: { names: Record<string, unknown> } }
      made.spec.names['shortNames'] = many(n, (i) => `s${i}`)
      made.spec.names['categories'] = many(n, (i) => `c${i}`)
      return made
    },
    spec: () => ({}),
  },
]

const get = (step: string, path: string, headers: Record<string, string> = {}): Step => ({
  name: step,
  sent: { method: 'GET', path, headers },
})

function steps({ crd: made, spec }: Grown, n: number): Step[] {
  runs++
  const thing = JSON.stringify({
    apiVersion: `${group()}/v1`,
    kind: 'Thing',
    metadata: { name: 'one' },
    spec: spec(n),
  })
  const patch: Sent = {
    method: 'PATCH',
    path: `${things()}/one`,
    type: 'application/merge-patch+json',
    body: { metadata: { annotations: { a: 'b' } } },
  }
  return [
    { name: 'create definition', sent: { method: 'POST', path: crds, body: JSON.stringify(made(n)) }, needed: true },
    get('served', `${things()}?limit=1`),
    { name: 'create object', sent: { method: 'POST', path: things(), body: thing } },
    get('list', things()),
    get('table', things(), tableAs),
    { name: 'small patch', sent: patch },
    get('discovery', '/apis', { accept: 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList' }),
    get('OpenAPI v3', `/openapi/v3/apis/${group()}/v1`),
    get('OpenAPI v2', '/openapi/v2'),
    {
      name: 'change definition',
      sent: { ...patch, path: `${crds}/${name()}` },
    },
    get('OpenAPI v2 after a change', '/openapi/v2'),
  ]
}

/** Definitions, and what is done with their objects. */
export const crdScenarios: readonly Scenario[] = grown.map((one) => ({
  title: `CRD: ${one.title}`,
  largest: one.largest ?? 16_384,
  steps: (n) => steps(one, n),
  after: () => [
    { method: 'DELETE', path: `${things()}/one` },
    { method: 'DELETE', path: `${crds}/${name()}` },
  ],
}))
