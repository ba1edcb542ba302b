// ResourceQuotas: what they refuse, in which words, and what their status says.
import { isDeepStrictEqual } from 'node:util'
import { isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { waitFor } from '#test/support/index.ts'
import { row, type Row } from '#test/parity/support/compare-rows.ts'
import { valueAt, type Manifest, type Session } from '#test/parity/support/session.ts'

type Amounts = Readonly<Record<string, string>>

const quiet = { quiet: true }

function object(apiVersion: string, kind: string, name: string, rest: JsonObject = {}): Manifest {
  return { apiVersion, kind, metadata: { name }, ...rest }
}

/** Objects that no row creates otherwise: one for each quota of a row. */
const probes = [
  { resource: 'endpoints', manifest: object('v1', 'Endpoints', 'probe') },
  { resource: 'limitranges', manifest: object('v1', 'LimitRange', 'probe') },
  { resource: 'roles.rbac.authorization.k8s.io', manifest: object('rbac.authorization.k8s.io/v1', 'Role', 'probe') },
] as const

/** One namespace with one or more quotas whose status is complete. */
class Space {
  private readonly session: Session
  private readonly namespace: string
  private limits = 0

  constructor(session: Session, namespace: string) {
    this.session = session
    this.namespace = namespace
  }

  async begin(): Promise<void> {
    await this.session.create(object('v1', 'Namespace', this.namespace), quiet)
    for (const path of ['serviceaccounts/default', 'configmaps/kube-root-ca.crt'])
      await this.session.untilQuiet(this.path(path), ({ status }) => status === 200)
  }

  path(rest: string): string {
    return `/api/v1/namespaces/${this.namespace}/${rest}`
  }

  /** Creates a quota and waits until it is in force. */
  async limit(name: string, hard: Amounts, spec: JsonObject = {}): Promise<void> {
    await this.limitQuietly(name, hard, spec)
    // A real server learns of quotas in order: when a later one is in force, so is this one.
    const { resource, manifest } = probes[this.limits++] ?? probes[0]
    await this.limitQuietly(`probe-${name}`, { [`count/${resource}`]: '0' })
    const placed = { ...manifest, metadata: { ...manifest.metadata, namespace: this.namespace } } as Manifest
    const isRefused = async (): Promise<boolean> =>
      (await this.session.create(placed, { quiet: true, query: '?dryRun=All' })).status === 403
    await waitFor(isRefused, { what: `quota ${name} in force`, deadlineMs: 60_000, intervalMs: 25 })
  }

  private async limitQuietly(name: string, hard: Amounts, spec: JsonObject = {}): Promise<void> {
    await this.create(object('v1', 'ResourceQuota', name, { spec: { hard: { ...hard }, ...spec } }), quiet)
    await this.session.untilQuiet(this.path(`resourcequotas/${name}`), ({ body }) =>
      isDeepStrictEqual(Object.keys(member(body, 'status.hard')).sort(), Object.keys(hard).sort()),
    )
  }

  /** Records whether the object is refused, and how. */
  async create(manifest: Manifest, { quiet: isQuiet = false, query = '' } = {}): Promise<void> {
    const placed = { ...manifest, metadata: { ...manifest.metadata, namespace: this.namespace } } as Manifest
    const { status, body } = await this.session.create(placed, { quiet: true, query })
    if (!isQuiet) this.session.note(`create ${manifest.kind}`, status === 201 ? status : body)
  }

  async change(path: string, change: (object: JsonObject) => void): Promise<void> {
    const { status, body } = await this.session.change(this.path(path), change, quiet)
    this.session.note(`change ${path}`, status === 200 ? status : body)
  }

  /** Waits until the quota says that this is used, and records what it says. */
  async uses(name: string, used: Amounts): Promise<void> {
    const { body } = await this.session.until(
      this.path(`resourcequotas/${name}`),
      (response) =>
        Object.entries(used).every(([resource, amount]) => member(response.body, 'status.used')[resource] === amount),
      { deadlineMs: 30_000, without: ['metadata.managedFields'] },
    )
    this.session.note(`used of ${name}`, valueAt(body, 'status') ?? null)
  }
}

function member(body: JsonValue, path: string): JsonObject {
  const value = valueAt(body, path)
  return isJsonObject(value ?? null) ? (value as JsonObject) : {}
}

function quotaRow(title: string, run: (space: Space, session: Session) => Promise<void>): Row {
  const name = `q${title.replaceAll(/[^a-z]+/g, '-').slice(0, 30)}-$ID`
  return row(title, async (session) => {
    const space = new Space(session, name)
    await space.begin()
    await run(space, session)
    await session.delete(`/api/v1/namespaces/${name}`, undefined, quiet)
  })
}

function pod(name: string, resources: JsonObject = {}, spec: JsonObject = {}): Manifest {
  const container = { name: 'main', image: 'registry.example/app:1', resources }
  return object('v1', 'Pod', name, { spec: { containers: [container], ...spec } })
}

function service(name: string, type: string, spec: JsonObject = {}): Manifest {
  return object('v1', 'Service', name, { spec: { type, ports: [{ port: 80 }], ...spec } })
}

function claim(name: string, storage: string, spec: JsonObject = {}): Manifest {
  const resources = { requests: { storage } }
  return object('v1', 'PersistentVolumeClaim', name, {
    spec: { accessModes: ['ReadWriteOnce'], resources, ...spec },
  })
}

function deviceClaim(name: string, requests: JsonObject[]): Manifest {
  return object('resource.k8s.io/v1', 'ResourceClaim', name, { spec: { devices: { requests } } })
}

/** Of Secrets no controller creates any in a new namespace. */
const secret = (name: string): Manifest => object('v1', 'Secret', name)
const both = (cpu: string, memory: string): JsonObject => ({ requests: { cpu, memory }, limits: { cpu, memory } })

export const quotaRows: readonly Row[] = [
  quotaRow('counts of objects', async (space, session) => {
    await space.limit('counts', {
      secrets: '2',
      'count/secrets': '3',
      'count/podtemplates': '1',
      'count/deployments.apps': '0',
      resourcequotas: '2',
      replicationcontrollers: '0',
      'count/leases.coordination.k8s.io': '1',
    })
    await space.create(secret('a'))
    await space.create(secret('b'), { query: '?dryRun=All' })
    await space.create(secret('b'))
    await space.create(secret('c'))
    await space.create(secret('c'), { query: '?dryRun=All' })
    await space.create(object('v1', 'PodTemplate', 'a'))
    await space.create(object('v1', 'PodTemplate', 'b'))
    await space.create(object('v1', 'ResourceQuota', 'second', { spec: { hard: { pods: '1' } } }))
    const labels = { app: 'a' }
    const template = { metadata: { labels }, spec: { containers: [{ name: 'a', image: 'a' }] } }
    await space.create(object('apps/v1', 'Deployment', 'a', { spec: { selector: { matchLabels: labels }, template } }))
    await space.create(object('v1', 'ReplicationController', 'a', { spec: { selector: labels, template } }))
    await space.create(object('coordination.k8s.io/v1', 'Lease', 'a'))
    await space.create(object('coordination.k8s.io/v1', 'Lease', 'b'))
    await space.uses('counts', { secrets: '2', 'count/podtemplates': '1', 'count/leases.coordination.k8s.io': '1' })
    await session.delete(space.path('secrets/a'), undefined, quiet)
    await session.delete(space.path('podtemplates/a'), undefined, quiet)
    await space.uses('counts', { secrets: '1', 'count/podtemplates': '0' })
    await space.create(secret('c'))
    await space.uses('counts', { secrets: '2' })
  }),
  quotaRow('devices of resource claims', async (space, session) => {
    await space.limit('devices', {
      'count/resourceclaims.resource.k8s.io': '4',
      'gold.deviceclass.resource.k8s.io/devices': '35',
      'iron.deviceclass.resource.k8s.io/devices': '2',
    })
    await space.create(deviceClaim('one', [{ name: 'r', exactly: { deviceClassName: 'gold' } }]))
    await space.create(deviceClaim('all', [{ name: 'r', exactly: { deviceClassName: 'gold', allocationMode: 'All' } }]))
    const [gold, iron] = ['gold', 'iron'].map((deviceClassName) => ({ name: deviceClassName, deviceClassName }))
    const choice = {
      name: 'r',
      firstAvailable: [{ ...gold, count: 3 }, iron ?? {}, { ...gold, name: 'more', count: 2 }],
    }
    await space.create(deviceClaim('choice', [choice]))
    await space.create(deviceClaim('twice', [{ name: 'a', exactly: { deviceClassName: 'iron', count: 2 } }]))
    await space.create(deviceClaim('free', [{ name: 'a', exactly: { deviceClassName: 'tin', count: 9 } }]))
    await space.uses('devices', { 'count/resourceclaims.resource.k8s.io': '3' })
    await session.delete(
      space.path('resourceclaims/all').replace('/api/v1', '/apis/resource.k8s.io/v1'),
      undefined,
      quiet,
    )
    await space.uses('devices', { 'gold.deviceclass.resource.k8s.io/devices': '1' })
    await space.create(deviceClaim('choice', [choice]))
  }),
  quotaRow('compute of pods', async (space, session) => {
    await space.limit('compute', {
      pods: '3',
      'requests.cpu': '1',
      'requests.memory': '1Gi',
      'limits.cpu': '2',
      'limits.memory': '2Gi',
      'requests.example.com/gpu': '2',
      'requests.ephemeral-storage': '1Gi',
    })
    await space.create(pod('none'))
    await space.create(pod('requests', { requests: { cpu: '1' } }))
    await space.create(pod('big', both('3', '4Gi')))
    await space.create(pod('one', both('250m', '256Mi')))
    const extended = { 'example.com/gpu': '3' }
    await space.create(
      pod('gpu', {
        requests: { cpu: '1m', memory: '1', ...extended },
        limits: { cpu: '1m', memory: '1', ...extended },
      }),
    )
    await space.create(pod('init', both('500m', '512Mi'), { initContainers: [{ name: 'init', image: 'i' }] }))
    const greedy = [{ name: 'init', image: 'i', resources: both('600m', '100Mi') }]
    await space.create(pod('init', both('500m', '512Mi'), { initContainers: greedy }))
    await space.create(pod('last', both('200m', '1Mi')))
    await space.create(pod('level', {}, { resources: both('100m', '1Mi') }))
    await space.uses('compute', { pods: '3', 'requests.cpu': '950m' })
    await session.patch(space.path('pods/one/status'), { status: { phase: 'Succeeded' } }, 'merge', quiet)
    await space.uses('compute', { pods: '2', 'requests.cpu': '700m' })
    await session.delete(space.path('pods/init?gracePeriodSeconds=0'), undefined, quiet)
    await space.uses('compute', { pods: '1', 'requests.cpu': '100m' })
  }),
  quotaRow('scopes of pods', async (space) => {
    await space.limit('best', { pods: '1' }, { scopes: ['BestEffort'] })
    await space.limit('other', { pods: '1' }, { scopes: ['NotBestEffort'] })
    await space.limit('ending', { pods: '1', 'requests.cpu': '1' }, { scopes: ['Terminating', 'NotBestEffort'] })
    await space.create(pod('a'))
    await space.create(pod('b'))
    await space.create(pod('c', { requests: { memory: '1' } }, { activeDeadlineSeconds: 5 }))
    await space.create(pod('d', { requests: { cpu: '2' } }, { activeDeadlineSeconds: 5 }))
    await space.create(pod('e', { requests: { cpu: '500m' } }, { activeDeadlineSeconds: 5 }))
    await space.create(pod('f', { requests: { cpu: '500m' } }))
    await space.uses('best', { pods: '1' })
    await space.uses('other', { pods: '1' })
    await space.uses('ending', { pods: '1', 'requests.cpu': '500m' })
  }),
  quotaRow('priority and affinity of pods', async (space) => {
    const expression = { scopeName: 'PriorityClass', operator: 'In', values: ['system-cluster-critical'] }
    await space.limit('critical', { pods: '0' }, { scopeSelector: { matchExpressions: [expression] } })
    await space.limit('across', { pods: '0' }, { scopes: ['CrossNamespacePodAffinity'] })
    await space.create(pod('g', {}, { priorityClassName: 'system-cluster-critical' }))
    const term = { topologyKey: 'zone', namespaces: ['default'], labelSelector: {} }
    const affinity = { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } }
    await space.create(pod('h', { requests: { cpu: '1' } }, { affinity }))
    await space.create(pod('plain'))
    await space.uses('critical', { pods: '0' })
    await space.uses('across', { pods: '0' })
  }),
  quotaRow('services and their ports', async (space) => {
    await space.limit('services', { services: '4', 'services.nodeports': '2', 'services.loadbalancers': '1' })
    await space.create(service('inner', 'ClusterIP'))
    await space.create(service('ports', 'NodePort'))
    const three = [80, 81, 82].map((port) => ({ name: `p${port}`, port }))
    await space.create(service('many', 'NodePort', { ports: three }))
    await space.create(service('balanced', 'LoadBalancer', { allocateLoadBalancerNodePorts: false }))
    await space.create(service('second', 'LoadBalancer'))
    await space.change('services/inner', ({ spec }) => {
      if (isJsonObject(spec ?? null)) (spec as JsonObject)['type'] = 'LoadBalancer'
    })
    await space.change('services/inner', ({ spec }) => {
      if (isJsonObject(spec ?? null)) (spec as JsonObject)['type'] = 'NodePort'
    })
    await space.create(service('third', 'NodePort'))
    await space.uses('services', { services: '3', 'services.nodeports': '2', 'services.loadbalancers': '1' })
  }),
  quotaRow('storage of claims', async (space) => {
    await space.limit('storage', {
      persistentvolumeclaims: '3',
      'requests.storage': '10Gi',
      'gold.storageclass.storage.k8s.io/requests.storage': '2Gi',
      'gold.storageclass.storage.k8s.io/persistentvolumeclaims': '1',
    })
    await space.create(claim('a', '4Gi'))
    await space.create(claim('b', '7Gi'))
    await space.create(claim('c', '3Gi', { storageClassName: 'gold' }))
    await space.create(claim('c', '1Gi', { storageClassName: 'gold' }))
    await space.create(claim('d', '1Gi', { storageClassName: 'gold' }))
    await space.uses('storage', { persistentvolumeclaims: '2', 'requests.storage': '5Gi' })
  }),
  quotaRow('the status follows the spec', async (space) => {
    await space.limit('q', { secrets: '0' })
    await space.create(secret('a'))
    await space.change('resourcequotas/q', ({ spec }) => {
      if (isJsonObject(spec ?? null)) (spec as JsonObject)['hard'] = { secrets: '5', pods: '2' }
    })
    // What admission of a loaded kube-apiserver knows of a quota is older than its status: nothing is created here.
    await space.uses('q', { secrets: '0', pods: '0' })
  }),
]
