// Requests without a body: addresses, headers and selectors that grow, against a few hundred objects; and many small
// objects.
import type { Scenario, Step } from './scenario.ts'
import type { Sent } from './measured-process.ts'

const maps = '/api/v1/namespaces/default/configmaps'
const mergePatch = 'application/merge-patch+json'
const many = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i))
const get = (name: string, path: string, headers: Record<string, string> = {}): Step => ({
  name,
  sent: { method: 'GET', path, headers },
})
const post = (path: string, body: object): Sent => ({ method: 'POST', path, body: JSON.stringify(body) })
const configMap = (name: string, meta: object = {}): Sent =>
  post(maps, { metadata: { name, ...meta }, data: { a: 'b' } })
const selector = (text: string): string => `${maps}?labelSelector=${encodeURIComponent(text)}`
const labels = Object.fromEntries(many(64, (i) => [`l${i}`, `v${i}`]))
const kept = many(300, (i) => configMap(`selected-${i}`, { labels }))

const oneStep = (title: string, step: (n: number) => Step, more: Partial<Scenario> = {}): Scenario => ({
  title,
  from: 32,
  largest: 4096,
  steps: (n) => [step(n)],
  ...more,
})

const addresses: readonly Scenario[] = [
  oneStep('URL: n query parameters', (n) => get('list', `${maps}?${many(n, (i) => `q${i}=1`).join('&')}`)),
  oneStep('URL: one parameter n times', (n) => get('list', `${maps}?${many(n, () => 'limit=1').join('&')}`)),
  oneStep('URL: n segments', (n) => get('get', `/api/v1${'/a'.repeat(n)}`)),
  oneStep('URL: n escapes', (n) => get('get', `${maps}/${'%61'.repeat(n)}`)),
  oneStep('header Accept: n media types', (n) =>
    get('list', maps, { accept: many(n, (i) => `application/x${i};q=0.1;as=Table`).join(',') }),
  ),
  oneStep('header Accept: n parameters', (n) => get('list', maps, { accept: `application/json${';a=b'.repeat(n)}` })),
  oneStep('headers Impersonate-Extra: n', (n) =>
    get('list', maps, {
      'impersonate-user': 'a',
      ...Object.fromEntries(many(Math.min(n, 1500), (i) => [`impersonate-extra-k${i}`, 'v'])),
    }),
  ),
  oneStep('header If-None-Match: n tags', (n) =>
    get('get', '/openapi/v2', { 'if-none-match': many(n, (i) => `"${i}"`).join(', ') }),
  ),
  oneStep('a bearer token of n times 8 dots', (n) =>
    get('get', maps, { authorization: `Bearer ${'a.'.repeat(n * 8)}` }),
  ),
]

const selectors: readonly Scenario[] = [
  oneStep('selector of a watch: n absent labels', (n) =>
    get('watch', `${selector(many(n, (i) => `!l${i}`).join(','))}&watch=1&timeoutSeconds=1`),
  ),
  oneStep('selector of a watch: n fields', (n) => {
    const fields = encodeURIComponent(many(n, (i) => `metadata.name!=x${i}`).join(','))
    return get('watch', `${maps}?fieldSelector=${fields}&watch=1&timeoutSeconds=1`)
  }),
  oneStep(
    'selector: n terms for 300 objects',
    (n) => get('list', selector(many(n, (i) => `l${i % 64}!=x${i}`).join(','))),
    {
      before: () => kept,
    },
  ),
  oneStep('selector: n values for 300 objects', (n) =>
    get('list', selector(`l0 notin (${many(n, (i) => `x${i}`).join(',')})`)),
  ),
  oneStep('selector: n like terms for a table', (n) =>
    get('table', selector(many(n, () => 'l0=v0').join(',')), {
      accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
    }),
  ),
  oneStep('field selector: n terms', (n) =>
    get('list', `${maps}?fieldSelector=${many(n, (i) => `metadata.name!=n${i}`).join(',')}`),
  ),
  oneStep('selector of a watch: n terms', (n) =>
    get('watch', `${selector(many(n, (i) => `l${i % 64}!=x${i}`).join(','))}&watch=1&timeoutSeconds=1`),
  ),
  oneStep('selector of a deletion of a collection: n terms', (n) => ({
    name: 'delete',
    sent: { method: 'DELETE', path: `${selector(many(n, (i) => `l0=x${i}`).join(','))}&dryRun=All` },
  })),
]

const namespaceOf = (n: number): string => `many-${n}`
const inNamespace = (n: number, make: (i: number) => object): Sent[] => [
  post('/api/v1/namespaces', { metadata: { name: namespaceOf(n) } }),
  ...many(n, (i) => post(`/api/v1/namespaces/${namespaceOf(n)}/configmaps`, make(i))),
]
const manyObjects: readonly Scenario[] = [
  {
    title: 'n objects in a namespace',
    largest: 2048,
    before: (n) => inNamespace(n, (i) => ({ metadata: { name: `m-${i}` } })),
    steps: (n) => {
      const of = `/api/v1/namespaces/${namespaceOf(n)}/configmaps`
      return [
        get('list', of),
        get('table', of, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }),
        get('list as YAML', of, { accept: 'application/yaml' }),
        get('watch', `${of}?watch=1&resourceVersion=0&timeoutSeconds=1`),
        { name: 'delete collection', sent: { method: 'DELETE', path: `${of}?dryRun=All` } },
        { name: 'delete namespace', sent: { method: 'DELETE', path: `/api/v1/namespaces/${namespaceOf(n)}` } },
      ]
    },
  },
  {
    title: 'n finalizers on each of 64 objects of a namespace that is deleted',
    largest: 512,
    before: (n) =>
      inNamespace(64, (i) => ({
        metadata: { name: `m-${i}`, finalizers: many(n, (j) => `example.com/f${j}`) },
      })),
    steps: () => [{ name: 'delete namespace', sent: { method: 'DELETE', path: '/api/v1/namespaces/many-64' } }],
    after: () => [
      ...many(64, (i): Sent => ({
        method: 'PATCH',
        path: `/api/v1/namespaces/many-64/configmaps/m-${i}`,
        type: mergePatch,
        body: { metadata: { finalizers: null } },
      })),
    ],
  },
  {
    title: 'a ResourceQuota and a LimitRange of n in a namespace, and a pod in it',
    largest: 16_384,
    before: (n) => [
      post('/api/v1/namespaces/default/resourcequotas', {
        metadata: { name: 'amplified' },
        spec: { hard: Object.fromEntries(many(n, (i) => [`count/r${i}.example.com`, '1'])) },
      }),
      post('/api/v1/namespaces/default/limitranges', {
        metadata: { name: 'amplified' },
        spec: {
          limits: [{ type: 'Container', default: Object.fromEntries(many(n, (i) => [`example.com/r${i}`, '1'])) }],
        },
      }),
    ],
    steps: () => [
      {
        name: 'create pod',
        sent: post('/api/v1/namespaces/default/pods', {
          metadata: { name: 'limited' },
          spec: { containers: many(10, (i) => ({ name: `c${i}`, image: 'a' })) },
        }),
      },
    ],
    after: () => [
      { method: 'DELETE', path: '/api/v1/namespaces/default/pods/limited', body: { gracePeriodSeconds: 0 } },
      { method: 'DELETE', path: '/api/v1/namespaces/default/resourcequotas/amplified' },
      { method: 'DELETE', path: '/api/v1/namespaces/default/limitranges/amplified' },
    ],
  },
]

const owner = (i: number, uid = `u-${i}`): object => ({ apiVersion: 'v1', kind: 'ConfigMap', name: `o-${i}`, uid })
const owners: readonly Scenario[] = [
  oneStep(
    'owners: n distinct ones that are not there',
    (n) => ({
      name: 'create',
      sent: configMap(`owned-${n}`, { ownerReferences: many(n, (i) => owner(i)) }),
    }),
    { largest: 16_384 },
  ),
  oneStep(
    'owners: n times the same',
    (n) => ({
      name: 'create',
      sent: configMap(`owned-again-${n}`, { ownerReferences: many(n, () => owner(0)) }),
    }),
    { largest: 16_384 },
  ),
  {
    title: 'owners: n objects of one owner that is not there',
    largest: 1024,
    steps: (n) => [{ name: 'create the last', sent: configMap(`fan-${n}-last`, { ownerReferences: [owner(n)] }) }],
    before: (n) => many(n, (i) => configMap(`fan-${n}-${i}`, { ownerReferences: [owner(n)] })),
  },
]

/** Requests without large bodies, and many small objects. */
export const requestScenarios: readonly Scenario[] = [...addresses, ...selectors, ...manyObjects, ...owners]
