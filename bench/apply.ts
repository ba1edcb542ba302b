// Measures server-side apply, and creates that rules in CEL check, as ratios to kube-apiserver with etcd.
import type { Endpoint } from './load.ts'
import type { Measurement } from './measurement.ts'
import { compareAll, type Work } from './side-by-side.ts'

const deployments = '/apis/apps/v1/namespaces/bench/deployments'
const appliedDeployments = 320
const ports = '/apis/bench.example.com/v1/namespaces/bench/portlists'

/** What an applier of a Deployment sends: 14 fields, one of which changes each time. */
const deployment = (name: string, revision: number): string =>
  JSON.stringify({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, labels: { app: name }, annotations: { revision: String(revision) } },
    spec: {
      replicas: 0,
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: {
          containers: [
            {
              name: 'main',
              image: 'registry.example.com/main:1',
              env: [{ name: 'A', value: 'b' }],
              ports: [{ containerPort: 8080, name: 'http' }],
              resources: { requests: { cpu: '100m', memory: '64Mi' } },
            },
          ],
        },
      },
    },
  })

const celRules = [
  { rule: 'self.ports.all(p, p.number > 0 && p.number < 65536)' },
  { rule: 'self.ports.all(p, self.ports.exists_one(q, q.name == p.name))', message: 'names are unique' },
  { rule: "self.host.matches('^[a-z0-9.-]+$') && !self.host.endsWith('.')" },
  { rule: "has(self.limit) ? quantity(self.limit).compareTo(quantity('10Gi')) <= 0 : true" },
]
const text = (maxLength: number): object => ({ type: 'string', maxLength })
/** Of objects with four rules in CEL. */
const celDefinition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'portlists.bench.example.com' },
  spec: {
    group: 'bench.example.com',
    scope: 'Namespaced',
    names: { plural: 'portlists', singular: 'portlist', kind: 'PortList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                required: ['host', 'ports'],
                properties: {
                  host: text(253),
                  limit: text(20),
                  ports: {
                    type: 'array',
                    maxItems: 32,
                    items: { type: 'object', properties: { name: text(63), number: { type: 'integer' } } },
                  },
                },
                'x-kubernetes-validations': celRules,
              },
            },
          },
        },
      },
    ],
  },
}
const portList = (name: string): string =>
  JSON.stringify({
    apiVersion: 'bench.example.com/v1',
    kind: 'PortList',
    metadata: { name },
    spec: {
      host: 'shop.example.com',
      limit: '5Gi',
      ports: Array.from({ length: 8 }, (_, i) => ({ name: `port-${i}`, number: 8000 + i })),
    },
  })

let created = 0
const works: readonly Work[] = [
  {
    name: 'apply',
    next() {
      const name = `d-${++created % appliedDeployments}`
      const path = `${deployments}/${name}?fieldManager=bench&force=true`
      return ['PATCH', path, deployment(name, created), 'application/apply-patch+yaml']
    },
  },
  { name: 'create checked by CEL', next: () => ['POST', ports, portList(`p-${++created}`)] },
]

/** Requests per second and per CPU-second of the server's processes, and the ratio of the two servers. */
export const apply: Measurement = {
  name: 'apply',
  describes: 'server-side apply of Deployments, create with four CEL rules, as ratios to kube-apiserver + etcd',
  run: (context) => compareAll(works, { name: 'apply', prepare, ...context }),
}

async function prepare(endpoint: Endpoint): Promise<void> {
  await endpoint.json('POST', '/api/v1/namespaces', JSON.stringify({ metadata: { name: 'bench' } }))
  await endpoint.json('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', JSON.stringify(celDefinition))
  await untilServed(endpoint)
}

/** kube-apiserver serves a definition a moment after it answered. */
async function untilServed(endpoint: Endpoint): Promise<void> {
  const deadline = performance.now() + 30_000
  while (performance.now() < deadline) {
    const { status } = await endpoint.request('POST', ports, portList(`first-${++created}`))
    if (status === 201) return
    if (status !== 404 && status !== 429 && status !== 503) throw new Error(`create of a PortList: ${status}`)
  }
  throw new Error('PortLists are not served after 30 s')
}
