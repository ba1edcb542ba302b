// Bodies found by a random generator: nulls, empty times, invalid metadata, preconditions of changes.
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import { row, type Row } from '#test/parity/support/compare-rows.ts'
import { pathOf, type Manifest } from '#test/parity/support/session.ts'

const labels = { app: 'web' }
const dry = 'dryRun=All'

function object(apiVersion: string, kind: string, name: string, rest: JsonObject = {}): Manifest {
  return { apiVersion, kind, metadata: { name: `${name}-$ID`, labels }, ...rest }
}

const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'nginx:1.27' }] } }
const rbac = 'rbac.authorization.k8s.io'
const subjects = [{ kind: 'User', name: 'a', apiGroup: rbac }]

const configMap = object('v1', 'ConfigMap', 'odd')
const deployment = object('apps/v1', 'Deployment', 'odd', { spec: { selector: { matchLabels: labels }, template } })
const budget = object('policy/v1', 'PodDisruptionBudget', 'odd', { spec: { selector: { matchLabels: labels } } })
const lease = object('coordination.k8s.io/v1', 'Lease', 'odd', { spec: {} })
const runtimeClass = object('node.k8s.io/v1', 'RuntimeClass', 'odd', { handler: 'runc' })
const roleBinding = object(`${rbac}/v1`, 'RoleBinding', 'odd', {
  ...{ roleRef: { apiGroup: rbac, kind: 'Role', name: 'a' }, subjects },
})
const volume = object('v1', 'PersistentVolume', 'odd', {
  spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/x' } },
})
const service = object('v1', 'Service', 'odd', { spec: { selector: labels, ports: [{ port: 80 }] } })
const policy = object('networking.k8s.io/v1', 'NetworkPolicy', 'odd', { spec: { podSelector: {} } })
const autoscaler = object('autoscaling/v2', 'HorizontalPodAutoscaler', 'odd', {
  spec: { maxReplicas: 2, scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' } },
})

/** Metadata that no object may have. */
const wrongMetadata: readonly JsonObject[] = [
  { labels: { '-bad': 'x' } },
  { annotations: { '-bad': 'x' } },
  { finalizers: ['unqualified'] },
  { finalizers: ['-a b/'] },
  { ownerReferences: [{ apiVersion: 'v1', kind: '', name: 'a', uid: 'b' }] },
  { deletionTimestamp: '2024-01-01T02:00:00+02:00' },
  { deletionGracePeriodSeconds: 3 },
  { generateName: '-X_' },
  { uid: 'other' },
]

/** A real server validates metadata several times in some requests, and repeats the causes as often. */
function metadataRow(good: Manifest, { status = false } = {}): Row {
  return row(`${good.apiVersion} ${good.kind}: changed to metadata that is wrong`, async (session) => {
    await session.create(good, { quiet: true })
    for (const metadata of wrongMetadata) {
      await session.patch(`${pathOf(good)}?${dry}`, { metadata })
      if (status) await session.patch(`${pathOf(good)}/status?${dry}`, { metadata })
    }
    await session.delete(pathOf(good), undefined, { quiet: true })
  })
}

/** New objects, sent unchanged. */
function newRow(about: string, ...bodies: readonly Manifest[]): Row {
  return row(`odd bodies: new: ${about}`, async (session) => {
    for (const body of bodies) await session.create(body, { query: `?${dry}` })
  })
}

/** Changes of a stored object. */
function changeRow(about: string, base: Manifest, changes: readonly JsonValue[], subresource = ''): Row {
  // The deleted object of an earlier row may still exist.
  const good = { ...base, metadata: { ...base.metadata, name: `${about.replaceAll(' ', '-')}-$ID` } }
  return row(`odd bodies: changed: ${about}`, async (session) => {
    const path = pathOf(good) + (subresource === '' ? '' : `/${subresource}`)
    await session.create(good, { quiet: true })
    for (const change of changes) await session.patch(`${path}?${dry}`, change, 'strategic')
    await session.delete(pathOf(good), undefined, { quiet: true })
  })
}

const emptyTimes: readonly JsonObject[] = [
  { metadata: { creationTimestamp: '' } },
  { metadata: { deletionTimestamp: '' } },
  { metadata: { creationTimestamp: 5 } },
  { spec: { renewTime: '' } },
  { spec: { renewTime: '2024-01-01T00:00:00Z', leaseDurationSeconds: 'x' } },
]

export const oddBodyRows: readonly Row[] = [
  ...[configMap, lease, runtimeClass, roleBinding].map((good) => metadataRow(good)),
  ...[deployment, budget, volume, service].map((good) => metadataRow(good, { status: true })),
  newRow(
    'nulls for structs',
    object('v1', 'Node', 'odd', { spec: null }),
    { ...autoscaler, spec: { ...(autoscaler['spec'] as JsonObject), behavior: { scaleDown: null } } },
    { ...deployment, status: null },
    object('v1', 'Secret', 'odd', { data: { a: null } }),
  ),
  newRow(
    'two ways to say the addresses of a node',
    object('v1', 'Node', 'odd', { spec: { podCIDR: '10.2.0.0/24', podCIDRs: ['10.3.0.0/24'] } }),
    object('v1', 'Node', 'odd', { spec: { podCIDRs: ['10.3.0.0/24'] } }),
  ),
  newRow(
    'bytes',
    object('v1', 'Secret', 'odd', { data: { a: 'yq==', b: 'YQ', c: 'YWK=' } }),
    object('v1', 'Secret', 'odd', { data: { a: 'yq==', b: 'YWK=' } }),
    object('v1', 'Secret', 'odd', { data: { a: 'YQ==YQ==' } }),
  ),
  newRow(
    'docker configurations that are no objects',
    ...['1', '"x"', '[]', 'true', 'null', '{}'].map((text) =>
      object('v1', 'Secret', 'odd', {
        type: 'kubernetes.io/dockerconfigjson',
        stringData: { '.dockerconfigjson': text },
      }),
    ),
  ),
  newRow('times', ...emptyTimes.map((change) => ({ ...lease, ...change })).slice(3), {
    ...configMap,
    metadata: { name: 'odd-$ID', creationTimestamp: '' },
  }),
  newRow(
    'names and finalizers that few kinds take',
    { ...budget, metadata: { name: 'A_$ID', finalizers: ['unqualified'] } },
    { ...runtimeClass, metadata: { name: 'odd-$ID', finalizers: ['unqualified'] } },
    { ...roleBinding, roleRef: { apiGroup: rbac, kind: 'Role', name: 'a/b' } },
  ),
  newRow(
    'a class by annotation',
    object('networking.k8s.io/v1', 'Ingress', 'odd', {
      metadata: { name: 'odd-$ID', annotations: { 'kubernetes.io/ingress.class': 'nginx' } },
      spec: { defaultBackend: { service: { name: 'a', port: { number: 80 } } } },
    }),
  ),
  newRow(
    'references of an account',
    object('v1', 'ServiceAccount', 'odd', { secrets: [{ name: 'a', namespace: 'b', kind: 'Secret' }, {}] }),
  ),
  changeRow('times', lease, emptyTimes.slice(0, 4)),
  changeRow('a runtime class', runtimeClass, [
    { scheduling: { nodeSelector: { 'a b': 'c' } } },
    { scheduling: { tolerations: [{ operator: 'exists' }] } },
    { overhead: { podFixed: { pods: '1' } } },
  ]),
  changeRow('a binding', roleBinding, [{ roleRef: { name: '' } }, { subjects: [{ kind: 'Group', name: '' }] }]),
  changeRow('a volume', volume, [{ spec: { volumeMode: 'x' } }, { spec: { nfs: { server: 'a', path: '/b' } } }]),
  changeRow('the status of a volume', volume, [{ status: null }, { status: { phase: 'Bound' } }], 'status'),
  changeRow('a network policy', policy, [
    { spec: { policyTypes: ['x'], ingress: [{ ports: [{ protocol: 'tcp' }] }] } },
  ]),
  changeRow(
    'the status of a service',
    service,
    [{ status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } } }, { status: { loadBalancer: { ingress: [] } } }],
    'status',
  ),
  changeRow(
    'the status of a balancer',
    object('v1', 'Service', 'balancer', { spec: { type: 'LoadBalancer', ports: [{ port: 80 }] } }),
    [
      { status: { loadBalancer: { ingress: [{ ipMode: 'VIP', hostname: 'a b' }] } } },
      { status: { loadBalancer: { ingress: [{ ip: '192.0.2.1', ipMode: 'x' }] } } },
    ],
    'status',
  ),
  changeRow(
    'the health port of a balancer',
    object('v1', 'Service', 'port', {
      spec: { type: 'LoadBalancer', externalTrafficPolicy: 'Local', ports: [{ port: 80 }] },
    }),
    [512, 31_000, 70_000].map((port) => ({ spec: { healthCheckNodePort: port } })),
  ),
  changeRow(
    'a priority',
    object('scheduling.k8s.io/v1', 'PriorityClass', 'odd', { value: 5 }),
    ['x', 'Never'].map((preemptionPolicy) => ({ preemptionPolicy })),
  ),
  row('odd bodies: changed: what was allocated to a claim', async (session) => {
    const claim = object('resource.k8s.io/v1', 'ResourceClaim', 'odd', {
      spec: { devices: { requests: [{ name: 'r', exactly: { deviceClassName: 'a.example.com' } }] } },
    })
    const result = { request: 'r', driver: 'a.example.com', pool: 'p', device: 'd' }
    const config = { source: 'FromClass', opaque: { driver: 'a.example.com', parameters: { a: 1 } } }
    const status = { allocation: { devices: { results: [result], config: [config] } } }
    await session.create(claim, { quiet: true })
    await session.patch(`${pathOf(claim)}/status`, { status })
    await session.patch(`${pathOf(claim)}/status?${dry}`, {
      status: { allocation: { devices: { results: [{ ...result, device: 'e' }] } } },
    })
    await session.delete(pathOf(claim), undefined, { quiet: true })
  }),
]
