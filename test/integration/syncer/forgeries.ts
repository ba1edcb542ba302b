// Forgeries by the admin of a member that would make its syncer speak for workloads of a logical cluster. Everything
// carries `mark`, so that a test finds it wherever it gets to.
import { cloneJson, isJsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import type { KubeClient } from '#client/index.ts'
import {
  contentHash,
  locatorAnnotation,
  managedLabel,
  memberAnnotation,
  templateChangesAnnotation,
} from '#crds/index.ts'
import { gvrs } from '#syncer/context/resources.ts'
import { waitFor } from '#test/support/index.ts'

export const mark = 'forged-by-evil'
const address = '203.0.113.66'
const eventsGvr = { group: '', version: 'v1', resource: 'events' } as const
const nodesGvr = { group: '', version: 'v1', resource: 'nodes' } as const
const allGvrs = { ...gvrs, events: eventsGvr, nodes: nodesGvr }
type Resource = keyof typeof allGvrs

/** What is read upstream to see whether something has changed. */
export const watched = [
  ...['deployments', 'replicasets', 'statefulsets', 'daemonsets', 'controllerrevisions', 'jobs', 'cronjobs', 'pods'],
  ...['services', 'endpointslices', 'persistentvolumeclaims', 'ingresses', 'horizontalpodautoscalers'],
  ...['poddisruptionbudgets', 'configmaps', 'events'],
] as const

/** The workloads and what belongs to them, as their tenant applies them into a namespace. */
export function victims(clusters: string): KubeObject[] {
  const annotations = { 'kcp.dev/clusters': clusters }
  const template = (app: string) => ({
    metadata: { labels: { app } },
    spec: { terminationGracePeriodSeconds: 0, containers: [{ name: 'app', image: 'example/app:1' }] },
  })
  const workload = (kind: string, name: string, spec: object): KubeObject => ({
    ...{ apiVersion: 'apps/v1', kind, metadata: { name, annotations } },
    spec: { selector: { matchLabels: { app: name } }, template: template(name), ...spec },
  })
  const claim = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }
  const job = { spec: { template: { spec: { ...template('often').spec, restartPolicy: 'Never' } } } }
  return [
    workload('Deployment', 'web', { replicas: 2 }),
    workload('StatefulSet', 'db', {
      replicas: 1,
      serviceName: 'db',
      volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: claim }],
    }),
    workload('DaemonSet', 'agent', {}),
    {
      ...{ apiVersion: 'batch/v1', kind: 'CronJob', metadata: { name: 'often', annotations } },
      spec: { schedule: '0 0 1 1 *', jobTemplate: job },
    },
    { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'alone', annotations }, spec: template('alone').spec },
    {
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' } },
      spec: { type: 'LoadBalancer', selector: { app: 'web' }, ports: [{ port: 80, targetPort: 8080 }] },
    },
    {
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'db' } },
      spec: { clusterIP: 'None', selector: { app: 'db' }, ports: [{ port: 80 }] },
    },
    {
      ...{ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata: { name: 'web' } },
      spec: { defaultBackend: { service: { name: 'web', port: { number: 80 } } } },
    },
    {
      ...{ apiVersion: 'autoscaling/v2', kind: 'HorizontalPodAutoscaler', metadata: { name: 'web' } },
      spec: {
        scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
        minReplicas: 2,
        maxReplicas: 3,
      },
    },
    {
      ...{ apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name: 'web' } },
      spec: { maxUnavailable: 1, selector: { matchLabels: { app: 'web' } } },
    },
  ]
}

/** A namespace of a logical cluster, as its attacker knows it. */
export interface Target {
  readonly cluster: string
  readonly clusterId: string
  readonly namespace: string
  /** The uid upstream of an object; the attacker may have seen it when the object was in its member. */
  readonly uidOf: (kind: string, name: string) => string
}

interface Forgery {
  readonly title: string
  readonly write: (forger: Forger) => Promise<unknown>
}

const template = (app: string): KubeObject => {
  const written = {
    metadata: { labels: { app } },
    spec: { containers: [{ name: 'app', image: `example/${mark}` }] },
  }
  const changes = { hash: contentHash(written), automount: null }
  return {
    ...written,
    metadata: {
      labels: { app, [managedLabel]: 'true' },
      annotations: { [templateChangesAnnotation]: JSON.stringify(changes) },
    },
  } as unknown as KubeObject
}

/** Keeps the syncer from deleting what is forged; the words of the refusal are the member's too. */
export async function refuseDeletions(client: KubeClient, signal: AbortSignal): Promise<void> {
  const group = { group: 'admissionregistration.k8s.io', version: 'v1' }
  const apiVersion = 'admissionregistration.k8s.io/v1'
  const metadata = { name: mark }
  const rules = { apiGroups: ['*'], apiVersions: ['*'], operations: ['DELETE'], resources: ['*'], scope: '*' }
  const spec = {
    failurePolicy: 'Fail',
    matchConstraints: { resourceRules: [rules], namespaceSelector: { matchLabels: { [mark]: 'true' } } },
    validations: [{ expression: '!request.userInfo.username.endsWith(":kcp-syncer")', message: mark }],
  }
  await client.create(
    { ...group, resource: 'validatingadmissionpolicies' },
    { apiVersion, kind: 'ValidatingAdmissionPolicy', metadata, spec },
    { signal },
  )
  await client.create(
    { ...group, resource: 'validatingadmissionpolicybindings' },
    {
      ...{ apiVersion, kind: 'ValidatingAdmissionPolicyBinding', metadata },
      spec: { policyName: mark, validationActions: ['Deny'] },
    },
    { signal },
  )
}

/** Writes in a member as its admin. What is refused, because it is there or for another reason, is left out. */
export class Forger {
  readonly target: Target
  readonly below: string
  readonly #client: KubeClient
  readonly #signal: AbortSignal
  #number = 0

  constructor(client: KubeClient, target: Target, signal: AbortSignal) {
    this.#client = client
    this.#signal = signal
    this.target = target
    this.below = `${target.clusterId}-${target.namespace}`
  }

  get suffix(): string {
    return `x${++this.#number}`
  }

  locator(kind: string, name: string): Record<string, string> {
    const { cluster, clusterId, namespace, uidOf } = this.target
    const isNamespace = kind === 'Namespace'
    const of = { cluster, clusterId, namespace: isNamespace ? '' : namespace, name, uid: uidOf(kind, name) }
    return { [locatorAnnotation]: JSON.stringify(of) }
  }

  /** Metadata of a copy of the object. */
  copy(kind: string, name: string): KubeObject['metadata'] {
    return {
      ...{ name, namespace: this.below, labels: { [managedLabel]: 'true' }, annotations: this.locator(kind, name) },
      finalizers: [`example.com/${mark}`],
    }
  }

  /** Makes the namespace, and what pods need there; the syncer cannot delete it. */
  async begin(): Promise<void> {
    const labels = { [managedLabel]: 'true', [mark]: 'true' }
    const annotations = this.locator('Namespace', this.target.namespace)
    const [namespace, signal] = [this.below, this.#signal]
    await waitFor(
      async () => {
        await this.create('namespaces', {
          apiVersion: 'v1',
          kind: 'Namespace',
          metadata: { name: namespace, labels, annotations },
        })
        await this.#client.patch(gvrs.namespaces, { name: namespace }, 'merge', { metadata: { labels } }, { signal })
        const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace } }
        return (await this.create('serviceaccounts', account)) !== undefined
      },
      { what: 'the namespace in the member', deadlineMs: 60_000 },
    )
  }

  async create(resource: Resource, object: KubeObject): Promise<KubeObject | undefined> {
    const { name = '', namespace } = object.metadata
    const signal = this.#signal
    const status = object['status']
    try {
      let made = await this.#client.create<KubeObject>(allGvrs[resource], object, { signal })
      const ref = { name, ...(namespace && { namespace }) }
      if (status !== undefined)
        made = await this.#client.patch<KubeObject>(
          allGvrs[resource],
          ref,
          'merge',
          { status },
          { subresource: 'status', signal },
        )
      return made
    } catch (error) {
      signal.throwIfAborted()
      return await this.#client
        .tryGet<KubeObject>(allGvrs[resource], { name, ...(namespace && { namespace }) }, { signal })
        .catch(() => {
          throw error
        })
    }
  }

  async patch(resource: Resource, name: string, patch: object, subresource?: 'status'): Promise<void> {
    const options = { ...(subresource && { subresource }), signal: this.#signal }
    await this.#client
      .patch(allGvrs[resource], { namespace: this.below, name }, 'merge', patch, options)
      .catch(() => this.#signal.throwIfAborted())
  }

  async get(resource: Resource, name: string): Promise<KubeObject | undefined> {
    return await this.#client.tryGet<KubeObject>(
      allGvrs[resource],
      { namespace: this.below, name },
      { signal: this.#signal },
    )
  }

  /** Deletes an object that was forged, or takes its finalizer and its locator from it. */
  async removeOne(random: () => number): Promise<void> {
    const resources = [
      'deployments',
      'statefulsets',
      'daemonsets',
      'pods',
      'jobs',
      'endpointslices',
      'services',
    ] as const
    const gvr = gvrs[resources[Math.floor(random() * resources.length)] ?? 'pods']
    const [namespace, signal] = [this.below, this.#signal]
    const { items } = await this.#client.list<KubeObject>(gvr, { namespace, signal })
    const name = items[Math.floor(random() * items.length)]?.metadata.name
    if (name === undefined || name.startsWith('own')) return
    const metadata = { finalizers: null, ...(random() < 0.5 && { annotations: { [locatorAnnotation]: null } }) }
    const ignore = (): void => signal.throwIfAborted()
    await this.#client.patch(gvr, { namespace, name }, 'merge', { metadata }, { signal }).catch(ignore)
    await this.#client.delete(gvr, { namespace, name }, { signal }).catch(ignore)
  }

  /** The copy of a workload, which the controllers of the member then act on. */
  async workload(resource: Resource, kind: string, name: string, spec: object): Promise<KubeObject | undefined> {
    const apiVersion = resource === 'cronjobs' ? 'batch/v1' : 'apps/v1'
    const made = await this.create(resource, { apiVersion, kind, metadata: this.copy(kind, name), spec: { ...spec } })
    return made
  }
}

const selector = (app: string): object => ({ selector: { matchLabels: { app } }, template: template(app) })

/** An owner reference to an object of the member. */
const ownedBy = ({ apiVersion, kind, metadata: { name = '', uid = '' } }: KubeObject) => [
  { apiVersion, kind, name, uid, controller: true },
]

/** Runs a pod of this name, with labels that Services select. */
async function pod(forger: Forger, name: string, app: string, owner?: KubeObject): Promise<KubeObject | undefined> {
  const { metadata, spec } = template(app) as unknown as { metadata: KubeObject['metadata']; spec: object }
  const nodeName = mark
  return await forger.create('pods', {
    ...{ apiVersion: 'v1', kind: 'Pod' },
    metadata: {
      ...metadata,
      ...{ name, namespace: forger.below, labels: { ...metadata.labels, [mark]: 'true' } },
      ...(owner && { ownerReferences: ownedBy(owner) }),
    },
    spec: { ...spec, nodeName },
    status: {
      ...{ phase: 'Running', podIP: address, podIPs: [{ ip: address }] },
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  })
}

async function replicaSet(forger: Forger): Promise<KubeObject | undefined> {
  const web = await forger.workload('deployments', 'Deployment', 'web', {
    ...{ replicas: 1, paused: true },
    ...selector('web'),
  })
  return web && (await forgedReplicaSet(forger, web))
}

/** A ReplicaSet of a Deployment of the member, with a template that nobody wrote upstream. */
export async function forgedReplicaSet(forger: Forger, web: KubeObject): Promise<KubeObject | undefined> {
  const made = template('web')
  return await forger.create('replicasets', {
    ...{ apiVersion: 'apps/v1', kind: 'ReplicaSet' },
    metadata: {
      ...{ name: 'web-6666666666', namespace: forger.below, ownerReferences: ownedBy(web) },
      labels: { app: 'web', [managedLabel]: 'true', 'pod-template-hash': '6666666666' },
      annotations: { 'deployment.kubernetes.io/revision': '66', [mark]: 'true' },
    },
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: 'web', 'pod-template-hash': '6666666666' } },
      template: {
        ...made,
        metadata: { ...made.metadata, labels: { ...made.metadata.labels, 'pod-template-hash': '6666666666' } },
      },
    },
  })
}

/** A revision of a StatefulSet of the member, in the same way. */
export async function forgedRevision(forger: Forger, db: KubeObject): Promise<KubeObject | undefined> {
  return await forger.create('controllerrevisions', {
    ...{ apiVersion: 'apps/v1', kind: 'ControllerRevision', revision: 66 },
    metadata: {
      ...{ name: 'db-6666666666', namespace: forger.below, ownerReferences: ownedBy(db) },
      labels: { app: 'db', [managedLabel]: 'true' },
    },
    data: { spec: { template: { ...template('db'), $patch: 'replace' } } },
  })
}

async function slice(forger: Forger, service: string, target: KubeObject | undefined): Promise<void> {
  const targetRef = target && {
    kind: 'Pod',
    namespace: forger.below,
    name: target.metadata.name,
    uid: target.metadata.uid,
  }
  await forger.create('endpointslices', {
    ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice' },
    metadata: {
      ...{ name: `${service}-${mark}${target ? '-pod' : ''}`, namespace: forger.below },
      labels: {
        [managedLabel]: 'true',
        'kubernetes.io/service-name': service,
        'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
      },
    },
    addressType: 'IPv4',
    endpoints: [{ addresses: [address], conditions: { ready: true }, ...(targetRef && { targetRef }) }],
    ports: [{ name: '', port: 8080, protocol: 'TCP' }],
  })
}

async function event(forger: Forger, kind: string, name: string, uid: string): Promise<void> {
  const now = new Date().toISOString().replace(/\.\d+/, '')
  await forger.create('events', {
    ...{ apiVersion: 'v1', kind: 'Event' },
    metadata: { name: `${name}.${mark}.${forger.suffix}`, namespace: forger.below },
    involvedObject: { apiVersion: 'v1', kind, namespace: forger.below, name, uid },
    ...{ type: 'Warning', reason: 'Forged', message: mark, firstTimestamp: now, lastTimestamp: now, count: 1 },
    source: { component: mark },
  })
}

/** One for each way by which something of a member comes up. */
export const forgeries: readonly Forgery[] = [
  { title: 'a ReplicaSet', write: replicaSet },
  {
    title: 'a pod of a ReplicaSet, and its node',
    write: async (forger) => pod(forger, 'web-6666666666-bcdfg', 'web', await replicaSet(forger)),
  },
  {
    title: 'an EndpointSlice without pods',
    write: async (forger) => {
      await forger.create('services', {
        ...{ apiVersion: 'v1', kind: 'Service', metadata: forger.copy('Service', 'web') },
        spec: { ports: [{ port: 80 }] },
      })
      await slice(forger, 'web', undefined)
      await slice(forger, 'db', undefined)
    },
  },
  {
    title: 'an EndpointSlice with a pod of the member',
    write: async (forger) => slice(forger, 'web', await pod(forger, `${mark}-pod`, 'web')),
  },
  {
    title: 'a pod of a StatefulSet, its claim and its revision',
    write: async (forger) => {
      const set = await forger.workload('statefulsets', 'StatefulSet', 'db', {
        serviceName: 'db',
        replicas: 0,
        ...selector('db'),
      })
      if (set === undefined) return
      await slice(forger, 'db', await pod(forger, 'db-5', 'db', set))
      await forgedRevision(forger, set)
    },
  },
  {
    title: 'claims of a StatefulSet, and of nobody',
    write: async (forger) => {
      for (const name of ['data-db-0', 'data-db-5', `data-${mark}-0`])
        await forger.create('persistentvolumeclaims', {
          ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim' },
          metadata: { name, namespace: forger.below, labels: { [managedLabel]: 'true', [mark]: 'true' } },
          spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
        })
    },
  },
  {
    title: 'a pod and a revision of a DaemonSet',
    write: async (forger) => {
      const set = await forger.workload('daemonsets', 'DaemonSet', 'agent', {
        ...selector('agent'),
        updateStrategy: { type: 'OnDelete' },
      })
      if (set !== undefined) await pod(forger, 'agent-bcdfg', 'agent', set)
    },
  },
  {
    title: 'a Job and its pod',
    write: async (forger) => {
      const spec = { ...(template('often')['spec'] as object), restartPolicy: 'Never' }
      const { metadata } = template('often')
      const cronJob = await forger.workload('cronjobs', 'CronJob', 'often', {
        ...{ schedule: '0 0 1 1 *', suspend: true },
        jobTemplate: { metadata: { labels: { [managedLabel]: 'true' } }, spec: { template: { metadata, spec } } },
      })
      if (cronJob === undefined) return
      const job = await forger.create('jobs', {
        ...{ apiVersion: 'batch/v1', kind: 'Job' },
        metadata: {
          ...{ name: 'often-66666666', namespace: forger.below, ownerReferences: ownedBy(cronJob) },
          labels: { [managedLabel]: 'true', [mark]: 'true' },
        },
        spec: { suspend: true, template: { metadata, spec } },
      })
      if (job !== undefined) await pod(forger, 'often-66666666-bcdfg', 'often', job)
    },
  },
  {
    title: 'the statuses of copies',
    write: async (forger) => {
      const counts = {
        replicas: 66,
        readyReplicas: 66,
        availableReplicas: 66,
        updatedReplicas: 66,
        observedGeneration: 66,
      }
      const conditions = [{ type: 'Available', status: 'False', reason: 'Forged', message: mark }]
      await forger.workload('deployments', 'Deployment', 'web', { replicas: 1, paused: true, ...selector('web') })
      await forger.patch('deployments', 'web', { status: { ...counts, conditions } }, 'status')
      const ingress = [{ ip: address }]
      for (const [resource, apiVersion, kind, spec, status] of [
        [
          ...(['services', 'v1', 'Service'] as const),
          { type: 'LoadBalancer', ports: [{ port: 80 }] },
          { loadBalancer: { ingress } },
        ],
        [
          ...(['ingresses', 'networking.k8s.io/v1', 'Ingress'] as const),
          { defaultBackend: { service: { name: 'web', port: { number: 80 } } } },
          { loadBalancer: { ingress } },
        ],
        [
          ...(['horizontalpodautoscalers', 'autoscaling/v2', 'HorizontalPodAutoscaler'] as const),
          { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }, maxReplicas: 66 },
          { currentReplicas: 66, desiredReplicas: 66, currentMetrics: null, conditions: [] },
        ],
        [
          ...(['poddisruptionbudgets', 'policy/v1', 'PodDisruptionBudget'] as const),
          { selector: { matchLabels: { app: 'web' } } },
          { currentHealthy: 66, desiredHealthy: 66, disruptionsAllowed: 66, expectedPods: 66 },
        ],
      ] as const) {
        await forger.create(resource, {
          apiVersion,
          kind,
          metadata: forger.copy(kind, 'web'),
          spec: cloneJson(spec),
        })
        await forger.patch(resource, 'web', { status }, 'status')
      }
    },
  },
  {
    title: 'a copy of a pod of the tenant',
    write: async (forger) => {
      const { spec } = template('alone')
      await forger.create('pods', {
        ...{ apiVersion: 'v1', kind: 'Pod', metadata: forger.copy('Pod', 'alone') },
        spec: { ...(spec as object), nodeName: mark },
        status: { phase: 'Running', podIP: address, podIPs: [{ ip: address }] },
      })
    },
  },
  {
    title: 'Events about objects that are upstream, and about those of the member',
    write: async (forger) => {
      const { uidOf } = forger.target
      for (const [kind, name] of [
        ['Deployment', 'web'],
        ['StatefulSet', 'db'],
        ['Pod', 'alone'],
        ['Service', 'web'],
        ['PodDisruptionBudget', 'web'],
      ] as const) {
        await event(forger, kind, name, uidOf(kind, name))
        const resource = `${kind.toLowerCase()}s` as Resource
        const live = await forger.get(resource, name)
        if (live !== undefined) await event(forger, kind, name, live.metadata.uid ?? '')
      }
    },
  },
  {
    title: 'EndpointSlices that seem to be of another member',
    write: async (forger) => {
      await forger.create('endpointslices', {
        ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice' },
        metadata: {
          ...{ name: `kcp-${mark}`, namespace: forger.below, annotations: forger.locator('EndpointSlice', mark) },
          labels: {
            ...{ [managedLabel]: 'true', 'kubernetes.io/service-name': 'web', [memberAnnotation]: mark },
            'endpointslice.kubernetes.io/managed-by': 'kcp-syncer',
          },
        },
        addressType: 'IPv4',
        endpoints: [{ addresses: [address], conditions: { ready: true } }],
        ports: [{ name: '', port: 8080, protocol: 'TCP' }],
      })
    },
  },
]

/**
 * Objects that tell when the syncer of the member has seen what was written before them: it shows an Event about its
 * own Deployment.
 */
export async function untilSeen(
  {
    member,
    up,
    below,
    namespace,
    deployment,
  }: {
    readonly member: KubeClient
    readonly up: KubeClient
    readonly below: string
    readonly namespace: string
    readonly deployment: string
  },
  signal: AbortSignal,
): Promise<void> {
  for (let round = 0; round < 3; round++) {
    const copy = await member.get<KubeObject>(gvrs.deployments, { namespace: below, name: deployment }, { signal })
    const now = new Date().toISOString().replace(/\.\d+/, '')
    const name = `seen.${Date.now()}.${round}`
    const about = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      namespace: below,
      name: deployment,
      uid: copy.metadata.uid,
    }
    const object = {
      ...{ apiVersion: 'v1', kind: 'Event', metadata: { name, namespace: below }, involvedObject: about },
      ...{ type: 'Normal', reason: 'Seen', message: 'seen', firstTimestamp: now, lastTimestamp: now, count: 1 },
    }
    await member.create(eventsGvr, object, { signal })
    await waitFor(async () => (await up.tryGet(eventsGvr, { namespace, name }, { signal })) !== undefined, {
      ...{ what: 'an Event of the member to be shown', deadlineMs: 60_000, intervalMs: 200 },
    })
  }
}

/** Of an autoscaler: its controller in an honest member looks at it again and again, and tells what it finds. */
function forgedInScaler({ annotations = {} }: KubeObject['metadata'], content: object): object {
  const { spec, status } = content as { readonly spec?: unknown; readonly status?: unknown }
  return {
    spec,
    isForged: /66|forged/.test(JSON.stringify(status ?? {})),
    isReported: annotations['status.kcp.dev/evil'] !== undefined,
  }
}

/** What is in a namespace upstream, without what changes all the time. */
export async function contentOf(
  up: KubeClient,
  namespace: string,
  signal: AbortSignal,
): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {}
  for (const resource of watched) {
    const { items } = await up.list<KubeObject>(allGvrs[resource as Resource], { namespace, signal })
    for (const { metadata, ...content } of items) {
      // Honest members go on to tell of what happens there.
      if (resource === 'events' && !JSON.stringify(content).includes(mark)) continue
      const { resourceVersion: _, managedFields: _fields, ...kept } = metadata
      found[`${resource} ${metadata.name}`] =
        resource === 'horizontalpodautoscalers' ? forgedInScaler(kept, content) : { metadata: kept, ...content }
    }
  }
  return found
}

/** What differs between two contents: names of objects, with the paths of their fields. */
export function differences(before: unknown, after: unknown, path = ''): string[] {
  if (!isJsonObject(before) || !isJsonObject(after))
    return JSON.stringify(before) === JSON.stringify(after) ? [] : [`${path}: ${text(before)} became ${text(after)}`]
  const fields = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...fields].flatMap((field) => differences(before[field], after[field], `${path}/${field}`))
}

const text = (value: unknown): string => (JSON.stringify(value) as string | undefined)?.slice(0, 200) ?? 'nothing'

/** The nodes that a logical cluster shows. */
export async function nodesOf(up: KubeClient, signal: AbortSignal): Promise<(string | undefined)[]> {
  return (await up.list<KubeObject>(nodesGvr, { signal })).items.map(({ metadata }) => metadata.name)
}

/** What a member says of the Secrets of a custom resource with this name, and the Secrets that it has made for that. */
export function relatedForgeries(owner: string): readonly {
  readonly says: string
  readonly secrets: readonly { readonly name: string; readonly more?: object }[]
}[] {
  const token = { type: 'bootstrap.kubernetes.io/token' }
  return [
    { says: 'payroll', secrets: [{ name: 'payroll' }] },
    { says: `${owner}s`, secrets: [{ name: `${owner}s` }] },
    { says: `../kube-system/${owner}`, secrets: [] },
    { says: `${owner}-token`, secrets: [{ name: `${owner}-token`, more: token }] },
    { says: `${owner}-key`, secrets: [{ name: `${owner}-key` }] },
    { says: `${owner}-none`, secrets: [] },
  ]
}
