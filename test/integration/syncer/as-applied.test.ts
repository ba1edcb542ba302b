// Manifests that an API server accepts run in a member as if they were applied there directly: generated ones, each
// also created in a namespace of its own in the same member. Upstream is an ordinary API server, which derives what a
// member derives, too.
import { expect } from 'chai'
import fc from 'fast-check'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { sharedInformers, type KubeClient } from '#client/index.ts'
import { downstreamNamespace, placedOnAnnotation } from '#crds/index.ts'
import { gvrs } from '#syncer/context/resources.ts'
import { startSyncer } from '#syncer/syncer.ts'
import { podTemplateUp } from '#syncer/transform/pod-template.ts'
import { createUpstream } from '#syncer/context/upstream.ts'
import { createLogger } from '#telemetry/index.ts'
import { podPatch } from '#virtualapi/outbound/members/pod-patch.ts'
import { startCluster, waitFor, type ClusterOptions } from '#test/support/index.ts'
import { asWildcard, clientOf, oneCluster } from './ordinary-upstream.ts'
import { simulateKubelet, type SimulatedKubelet } from './played-member.ts'

const namespace = 'shop'
const direct = 'direct'
const signal = new AbortController().signal
const placed = { [placedOnAnnotation]: JSON.stringify({ east: { state: 'Serving' } }) }
type Resource = keyof typeof gvrs
const ofNamespace = { fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }
type Spec = Record<string, unknown> & { containers: { env?: { name: string }[] }[] }

// What create accepts, also where server-side apply does not: repeated names, ports, addresses and Secrets.
const variables = fc.array(
  fc.oneof(
    fc.record({ name: fc.constantFrom('A', 'B'), value: fc.constantFrom('1', '2', '$(A)') }),
    fc.record({
      name: fc.constantFrom('A', 'B'),
      valueFrom: fc.constant(ofNamespace),
    }),
  ),
  { minLength: 1, maxLength: 5 },
)
const ports = fc.array(fc.record({ containerPort: fc.constantFrom(80, 81), protocol: fc.constantFrom('TCP', 'UDP') }), {
  minLength: 1,
  maxLength: 3,
})
const aliases = fc.array(
  fc.record({ ip: fc.constantFrom('10.1.1.1', '10.1.1.2'), hostnames: fc.constantFrom(['a'], ['b', 'c']) }),
  { minLength: 1, maxLength: 3 },
)
// What a server derives from the labels of a pod.
const keys = fc.record(
  {
    matchLabelKeys: fc.constantFrom(['pod-template-hash'], ['tier'], ['tier', 'pod-template-hash'], ['absent']),
    mismatchLabelKeys: fc.constantFrom(['zone'], ['zone', 'absent-too']),
  },
  { requiredKeys: [] },
)
const labelSelector = fc.constantFrom(
  { matchLabels: { app: 'web' } },
  { matchExpressions: [{ key: 'app', operator: 'Exists' }] },
  { matchLabels: { app: 'web' }, matchExpressions: [{ key: 'zone', operator: 'NotIn', values: ['z'] }] },
  {},
)
const term = fc
  .tuple(keys, labelSelector, fc.constantFrom(undefined, ['other']))
  .map(([some, selector, namespaces]) => ({
    topologyKey: 'kubernetes.io/hostname',
    labelSelector: selector,
    ...some,
    ...(namespaces && { namespaces }),
  }))
const affinity = fc.record({
  podAffinity: fc.record({
    preferredDuringSchedulingIgnoredDuringExecution: fc.array(
      term.map((podAffinityTerm) => ({ weight: 1, podAffinityTerm })),
      { minLength: 1, maxLength: 2 },
    ),
  }),
  podAntiAffinity: fc.record({
    requiredDuringSchedulingIgnoredDuringExecution: fc.array(term, { minLength: 1, maxLength: 2 }),
  }),
})
const spread = fc
  .uniqueArray(fc.constantFrom('kubernetes.io/hostname', 'zone'), { minLength: 1, maxLength: 2 })
  .chain((topologyKeys) =>
    fc.tuple(
      ...topologyKeys.map((topologyKey) =>
        fc.tuple(keys, labelSelector).map(([{ matchLabelKeys }, selector]) => ({
          maxSkew: 1,
          topologyKey,
          whenUnsatisfiable: 'ScheduleAnyway',
          labelSelector: selector,
          ...(matchLabelKeys && { matchLabelKeys }),
        })),
      ),
    ),
  )
const podSpecs = fc.record(
  {
    containers: fc
      .record({ env: variables, ports }, { requiredKeys: [] })
      .map((some) => [{ name: 'main', image: 'example/any:1', ...some }]),
    hostAliases: aliases,
    imagePullSecrets: fc.array(fc.record({ name: fc.constantFrom('s', 't') }), { minLength: 1, maxLength: 3 }),
    affinity,
    topologySpreadConstraints: spread,
  },
  { requiredKeys: ['containers'] },
)
const labels = { app: 'web', tier: 'front', zone: 'a' }

/** The fields of a pod that the manifest decides, and what the server derives from them. */
function seen(pod: KubeObject): unknown {
  const { containers, affinity: near, ...spec } = pod['spec'] as Spec
  const fields = ['hostAliases', 'imagePullSecrets', 'topologySpreadConstraints', 'nodeSelector', 'schedulingGates']
  const hash = pod.metadata.labels?.['pod-template-hash'] ?? 'none'
  const told = {
    containers: containers.map(({ env, ...one }) => ({ env, ports: (one as { ports?: unknown }).ports })),
    near,
    ...Object.fromEntries(fields.map((field) => [field, spec[field]])),
  }
  return JSON.parse(JSON.stringify(told).replaceAll(hash, 'HASH'))
}

describe('a manifest that an API server accepts', function () {
  this.timeout(90_000)
  const ids = oneCluster('acme')
  const down = `${ids.id}-${namespace}`
  const stack = new AsyncDisposableStack()
  const life = new AbortController()
  let up: KubeClient
  let east: KubeClient
  let kubelet: SimulatedKubelet

  before(async function () {
    this.timeout(300_000)
    const log = createLogger({ level: (process.env['KCP_TEST_LOG'] as 'debug' | undefined) ?? 'error' })
    const flags = { 'kube-apiserver': ['--disable-admission-plugins=ServiceAccount,LimitRanger'] }
    const started = async (options: ClusterOptions): Promise<KubeClient> =>
      clientOf(stack.use(await startCluster(options)).kubeconfig, stack)
    ;[up, east] = await Promise.all([
      started({ name: 'up', flags }),
      started({ name: 'east', controllerManager: true }),
    ])
    kubelet = simulateKubelet(east, { subnet: '10.91.0', signal: life.signal })
    const informers = sharedInformers(asWildcard(up, 'acme'), { allClusters: true, log, signal: life.signal })
    const syncer = startSyncer({
      member: { name: 'east', id: 'eastmember', serviceNetwork: 'Flat' },
      upstream: createUpstream({ informers, client: () => up, ids }),
      downstream: east,
      apiAddress: { host: 'kcp.example', port: 7443 },
      log,
      signal: life.signal,
    })
    stack.defer(async () => {
      life.abort()
      await syncer[Symbol.asyncDispose]()
    })
    for (const [client, name] of [
      [up, namespace],
      [east, direct],
    ] as const)
      await client.create(gvrs.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }, { signal })
    await until('the ServiceAccount', () =>
      east.tryGet(gvrs.serviceaccounts, { namespace: direct, name: 'default' }, { signal }),
    )
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  const until = <T>(what: string, attempt: () => Promise<T | undefined | false>): Promise<T> =>
    waitFor(async () => (await attempt()) || undefined, { what, deadlineMs: 45_000 })
  /** Creates it upstream for the member, and in the member itself. */
  async function createBoth(resource: Resource, { metadata, ...content }: KubeObject): Promise<void> {
    const annotated = { ...metadata, namespace, annotations: placed }
    await up.create(gvrs[resource], { ...content, metadata: annotated }, { signal })
    await east.create(gvrs[resource], { ...content, metadata: { ...metadata, namespace: direct } }, { signal })
  }
  /**
   * The pod whose name begins so, where it runs: upstream, as it is in the member, and the one that was applied
   * directly.
   */
  async function podsOf(prefix: string): Promise<[KubeObject, KubeObject, KubeObject] | undefined> {
    const found = await Promise.all(
      (
        [
          [up, namespace],
          [east, down],
          [east, direct],
        ] as const
      ).map(async ([client, space]) =>
        (await client.list<KubeObject>(gvrs.pods, { namespace: space, signal })).items.filter(
          ({ metadata: { name = '', deletionTimestamp } }) =>
            (name === prefix || name.startsWith(`${prefix}-`)) && deletionTimestamp === undefined,
        ),
      ),
    )
    const [shown, live, same] = found.map(([pod]) => pod)
    return found.every(({ length }) => length === 1) && shown && live && same ? [shown, live, same] : undefined
  }
  function expectAlike(title: string, [shown, live, same]: readonly [KubeObject, KubeObject, KubeObject]): void {
    const given = live as KubeObject & Parameters<typeof podTemplateUp>[0]
    const { affinity: near } = JSON.parse(JSON.stringify(given.spec).replaceAll(`"${ids.id}-`, '"')) as Spec
    const restored = podTemplateUp(given)
    const inMember = { ...restored, spec: { ...restored.spec, affinity: near } }
    expect(seen(inMember), `${title} in the member`).to.deep.equal(seen(same))
    expect(seen(shown), `${title} upstream`).to.deep.equal(seen(same))
  }

  const specs = fc.sample(podSpecs, { seed: 20, numRuns: 24 })
  it('runs as a Deployment: repeated keys, and selectors that depend on labels', async () => {
    const deployment = (index: number): KubeObject => ({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: `d${index}` },
      spec: {
        selector: { matchLabels: { app: 'web' } },
        template: { metadata: { labels }, spec: specs[index] },
      },
    })
    for (const index of specs.keys()) await createBoth('deployments', deployment(index))
    for (const [index, spec] of specs.entries()) {
      const title = JSON.stringify(spec)
      expectAlike(title, await until(`pods of d${index}: ${title}`, () => podsOf(`d${index}`)))
    }
  })
  it('runs as a bare pod', async () => {
    for (const [index, spec] of specs.entries())
      await createBoth('pods', { apiVersion: 'v1', kind: 'Pod', metadata: { name: `p${index}`, labels }, spec })
    for (const [index, spec] of specs.entries()) {
      const title = JSON.stringify(spec)
      expectAlike(title, await until(`pod p${index}: ${title}`, () => podsOf(`p${index}`)))
    }
  })
  it('reaches a workload that runs, and what others own there stays', async () => {
    const template = (env: unknown[]): object => ({
      metadata: { labels: { app: 'updated' } },
      spec: { containers: [{ name: 'main', image: 'example/any:1', env }] },
    })
    const spec = { selector: { matchLabels: { app: 'updated' } }, template: template([{ name: 'A', value: '1' }]) }
    await createBoth('deployments', { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'u' }, spec })
    await until('its pods', () => podsOf('u'))
    const ref = { namespace: down, name: 'u' }
    const foreign = { metadata: { annotations: { 'example.com/admin': 'x' } }, spec: { minReadySeconds: 1 } }
    await east.patch(gvrs.deployments, ref, 'merge', foreign, { fieldManager: 'admin', signal })
    const own = { namespace, name: 'u' }
    for (const env of [
      [
        { name: 'A', value: '1' },
        { name: 'A', value: '2' },
        { name: 'B', value: '1' },
      ],
      [
        { name: 'B', value: '2' },
        { name: 'B', value: '3' },
      ],
      [{ name: 'A', value: '3' }],
      [],
    ]) {
      const patch = { spec: { template: template(env) } }
      await up.patch(gvrs.deployments, own, 'merge', patch, { signal })
      await until(`variables ${JSON.stringify(env)}`, async () => {
        const copy = await east.get<KubeObject>(gvrs.deployments, ref, { signal })
        const { env: live = [] } = (copy['spec'] as { template: { spec: Spec } }).template.spec.containers[0] ?? {}
        return JSON.stringify(live.filter(({ name }) => !name.startsWith('KUBERNETES_'))) === JSON.stringify(env)
      })
    }
    const copy = await east.get<KubeObject>(gvrs.deployments, ref, { signal })
    expect(copy.metadata.annotations).to.include({ 'example.com/admin': 'x' })
    expect(copy.metadata.annotations).to.have.property('deployment.kubernetes.io/revision')
  })
  it('gets the defaults and bounds of its namespace', async () => {
    const limits = [
      {
        type: 'Container',
        default: { cpu: '200m', memory: '64Mi' },
        defaultRequest: { cpu: '100m' },
        max: { cpu: '1', memory: '1Gi' },
      },
    ]
    const limitRange = { apiVersion: 'v1', kind: 'LimitRange', metadata: { name: 'bounds' }, spec: { limits } }
    await createBoth('limitranges', limitRange)
    await until('the LimitRange', () => east.tryGet(gvrs.limitranges, { namespace: down, name: 'bounds' }, { signal }))
    const deployment = (name: string, resources: object): KubeObject => ({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name },
      spec: {
        selector: { matchLabels: { app: name } },
        template: {
          metadata: { labels: { app: name } },
          spec: { containers: [{ name: 'main', image: 'example/any:1', resources }] },
        },
      },
    })
    for (const [index, resources] of [{}, { limits: { cpu: '300m' } }, { requests: { memory: '1Mi' } }].entries()) {
      const name = `limited${index}`
      await createBoth('deployments', deployment(name, resources))
      const pods = await until(`the pods of ${name}`, () => podsOf(name))
      const [shown, live, same] = pods.map(
        (pod) => (pod['spec'] as { containers: { resources: object }[] }).containers[0],
      )
      expect(same?.resources).to.have.nested.property('limits.memory', '64Mi')
      expect(live?.resources).to.deep.equal(same?.resources)
      expect(shown?.resources).to.deep.equal(same?.resources)
    }
    await createBoth('deployments', deployment('large', { requests: { cpu: '2' }, limits: { cpu: '2' } }))
    for (const [client, space] of [
      [east, direct],
      [up, namespace],
    ] as const)
      await until(`the refusal in ${space}`, async () =>
        JSON.stringify(await client.get(gvrs.deployments, { namespace: space, name: 'large' }, { signal })).includes(
          'maximum cpu usage per Container is 1, but limit is 2',
        ),
      )
    for (const client of [up, east])
      await client.delete(
        gvrs.limitranges,
        { namespace: client === up ? namespace : direct, name: 'bounds' },
        { signal },
      )
    await until('the LimitRange to go', async () => {
      const found = await east.tryGet(gvrs.limitranges, { namespace: down, name: 'bounds' }, { signal })
      return found === undefined
    })
  })
  it('has the node ports and the class of its load balancer that it asks for, or an Event says which', async () => {
    interface Shape {
      readonly ports: readonly { readonly nodePort?: number }[]
      readonly loadBalancerClass?: string
      readonly healthCheckNodePort?: number
    }
    const service = (name: string, spec: object, space: string): KubeObject => ({
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name, namespace: space } },
      spec: { selector: { app: 'web' }, ...spec },
    })
    const nodePort = (...numbers: number[]): object => ({
      type: 'NodePort',
      ports: numbers.map((number, index) => ({ name: `p${index}`, port: 80 + index, nodePort: number })),
    })
    const balanced = {
      ...{ type: 'LoadBalancer', loadBalancerClass: 'example.com/internal', externalTrafficPolicy: 'Local' },
      ...{ healthCheckNodePort: 31020, ports: [{ port: 80, nodePort: 31021 }] },
    }
    await east.create(gvrs.services, service('taken', nodePort(31011), direct), { signal })
    const wanted: Record<string, object> = {
      free: nodePort(31010, 31012),
      partly: nodePort(31013, 31011),
      balanced,
      chosen: { type: 'NodePort', ports: [{ port: 80 }] },
    }
    for (const [name, spec] of Object.entries(wanted))
      await up.create(gvrs.services, service(name, spec, namespace), { signal })
    const copyOf = async (name: string): Promise<Shape> => {
      const copy = await until(name, () => east.tryGet(gvrs.services, { namespace: down, name }, { signal }))
      return copy['spec'] as Shape
    }
    const portsOf = ({ ports: all }: Shape): unknown[] => all.map(({ nodePort: number }) => number)
    expect(portsOf(await copyOf('free'))).to.deep.equal([31010, 31012])
    expect(await copyOf('balanced')).to.deep.include({
      loadBalancerClass: 'example.com/internal',
      healthCheckNodePort: 31020,
    })
    const chosen = await up.get<KubeObject>(gvrs.services, { namespace, name: 'chosen' }, { signal })
    expect(portsOf(await copyOf('chosen'))).to.deep.equal(portsOf(chosen['spec'] as Shape))
    const [kept, other] = portsOf(await copyOf('partly'))
    expect(kept).to.equal(31013)
    expect(other).to.not.equal(31011)
    const event = await until('the Event', async () => {
      const { items } = await up.list<KubeObject>(
        { group: '', version: 'v1', resource: 'events' },
        { namespace, signal },
      )
      return items.find((one) => one['reason'] === 'NodePortDiffers')
    })
    expect(event['message']).to.contain(`${String(other)} instead of 31011 for port 81/TCP`)
    // The port becomes free, and the next change of the Service takes it.
    await east.delete(gvrs.services, { namespace: direct, name: 'taken' }, { signal })
    const metadata = { labels: { reconciled: 'true' } }
    await until('the port that has become free', async () => {
      await up.patch(gvrs.services, { namespace, name: 'partly' }, 'merge', { metadata }, { signal })
      metadata.labels.reconciled += 'e'
      return portsOf(await copyOf('partly'))[1] === 31011
    })
  })
  it('runs in namespaces whose names are too long with the id, also if they begin alike', async () => {
    const labelled = { app: 'long' }
    const deployment = (space: string): KubeObject => ({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'long', namespace: space, annotations: placed },
      spec: {
        selector: { matchLabels: labelled },
        template: {
          metadata: { labels: labelled },
          spec: {
            containers: [{ name: 'main', image: 'example/any:1', env: [{ name: 'NS', valueFrom: ofNamespace }] }],
          },
        },
      },
    })
    const spaces = [
      'a'.repeat(52),
      'a'.repeat(53),
      'a'.repeat(63),
      `${'a'.repeat(50)}-some-others`,
      'a'.repeat(58),
      `b${'a-'.repeat(25)}bc`,
    ]
    for (const name of spaces) {
      await up.create(gvrs.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }, { signal })
      await up.create(gvrs.deployments, deployment(name), { signal })
    }
    for (const space of spaces) {
      const pod = await until(`the pod in ${space}`, async () => {
        const { items } = await up.list<KubeObject>(gvrs.pods, { namespace: space, signal })
        return items.find(({ status }) => (status as { phase?: string } | undefined)?.phase === 'Running')
      })
      const ref = { namespace: downstreamNamespace(ids.id, space), name: pod.metadata.name ?? '' }
      const live = await east.get<KubeObject>(gvrs.pods, ref, { signal })
      const env = (live['spec'] as { containers: { env: object[] }[] }).containers[0]?.env
      expect(env).to.deep.include({ name: 'NS', value: space })
      expect(JSON.stringify(pod)).to.not.contain(ref.namespace)
    }
    for (const name of spaces) await up.delete(gvrs.deployments, { namespace: name, name: 'long' }, { signal })
    for (const space of spaces)
      await until(`namespace ${space} to leave the member`, async () => {
        const name = downstreamNamespace(ids.id, space)
        const found = await east.tryGet<KubeObject>(gvrs.namespaces, { name }, { signal })
        return found === undefined || found.metadata.deletionTimestamp !== undefined
      })
  })
  it('is told where it may run while it is gated', async () => {
    const required = { nodeSelectorTerms: [{ matchExpressions: [{ key: 'gpu', operator: 'Exists' }] }] }
    const preferred = [{ weight: 1, preference: { matchExpressions: [{ key: 'ssd', operator: 'Exists' }] } }]
    const nodeAffinity = {
      requiredDuringSchedulingIgnoredDuringExecution: required,
      preferredDuringSchedulingIgnoredDuringExecution: preferred,
    }
    const gated = {
      containers: [{ name: 'main', image: 'example/any:1' }],
      schedulingGates: [{ name: 'a.example/one' }, { name: 'b.example/two' }],
      nodeSelector: { disk: 'fast' },
    }
    const changes = [
      { spec: { nodeSelector: { gpu: 'yes' } } },
      { spec: { affinity: { nodeAffinity }, tolerations: [{ key: 'gpu', operator: 'Exists' }] } },
      { spec: { schedulingGates: [{ name: 'b.example/two' }], nodeSelector: { flavor: 'x' } } },
      { spec: { schedulingGates: [] } },
    ]
    await createBoth('pods', { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'gated' }, spec: gated })
    await until('the gated pods', () => podsOf('gated'))
    for (const change of changes)
      for (const [client, space] of [
        [up, namespace],
        [east, direct],
      ] as const)
        await client.patch(gvrs.pods, { namespace: space, name: 'gated' }, 'merge', change, { signal })
    const pods = await until('the pods without gates', async () => {
      const found = await podsOf('gated')
      return found?.every((pod) => (pod['spec'] as { nodeName?: string }).nodeName !== undefined) && found
    })
    expectAlike('a gated pod', pods)
    // As the API server of tenants writes the change of a pod that a member made, in all orders.
    for (const count of [1, 2, 3, 4]) {
      const name = `written-${count}`
      const pod = (await east.create<KubeObject>(
        gvrs.pods,
        { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: direct }, spec: gated },
        { signal },
      )) satisfies KubeObject
      let old = pod
      for (const some of [changes.slice(0, count), changes.slice(count)].filter(({ length }) => length > 0)) {
        const next = structuredClone(old) as KubeObject & { spec: Record<string, unknown> }
        for (const { spec } of some)
          for (const [field, value] of Object.entries(spec))
            next.spec[field] =
              field === 'schedulingGates' || field === 'tolerations'
                ? value
                : { ...(next.spec[field] as object | undefined), ...value }
        const ref = { namespace: direct, name }
        const live = await east.get<KubeObject>(gvrs.pods, ref, { signal })
        const patch = podPatch({ subresource: '', old, next, live, annotationPrefixes: [] })
        await east.patch(gvrs.pods, ref, 'strategic', patch, { signal })
        old = next
      }
      const written = await east.get<KubeObject>(gvrs.pods, { namespace: direct, name }, { signal })
      const [, , same] = pods
      expect(seen(written), name).to.deep.equal(seen(same))
    }
  })
  it('shows the nodes that run its pods, and nothing of others', async () => {
    const nodes = { group: '', version: 'v1', resource: 'nodes' } as const
    const secret = 'of-another-tenant'
    const node = (name: string, more: Record<string, object> = {}): KubeObject => ({
      ...{ apiVersion: 'v1', kind: 'Node' },
      metadata: {
        name,
        labels: { 'kubernetes.io/arch': 'amd64', [secret]: secret },
        annotations: { [secret]: secret },
      },
      spec: { taints: [{ key: secret, effect: 'PreferNoSchedule' }], ...more['spec'] },
      status: {
        capacity: { cpu: '4', 'example.com/gpu': '1' },
        allocatable: { cpu: '3' },
        addresses: [{ type: 'InternalIP', address: '192.0.2.77' }],
        conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message: secret }],
        images: [{ names: [secret], sizeBytes: 1 }],
        ...more['status'],
      },
    })
    for (const name of ['shared', 'elsewhere', 'empty']) await east.create(nodes, node(name), { signal })
    const run = async (name: string, space: string, nodeName: string): Promise<void> => {
      const spec = { containers: [{ name: 'main', image: 'example/any:1' }], nodeName }
      await east.create(
        gvrs.pods,
        { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: space }, spec },
        { signal },
      )
    }
    await run('foreign', direct, 'elsewhere')
    await run('neighbour', direct, 'shared')
    const shown = async (): Promise<KubeObject[]> => (await up.list<KubeObject>(nodes, { signal })).items
    const namesShown = async (): Promise<string> => (await shown()).map(({ metadata }) => metadata.name).join()
    await up.create(
      gvrs.pods,
      {
        ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'on-shared', namespace, annotations: placed } },
        spec: {
          containers: [{ name: 'main', image: 'example/any:1' }],
          schedulingGates: [{ name: 'example.com/wait' }],
        },
      },
      { signal },
    )
    const ref = { namespace: down, name: 'on-shared' }
    await until('the gated pod', () => east.tryGet(gvrs.pods, ref, { signal }))
    // The scheduler's part: the simulated kubelet binds pods only without gates.
    kubelet.hold('on-shared')
    await up.patch(gvrs.pods, { namespace, name: 'on-shared' }, 'merge', { spec: { schedulingGates: [] } }, { signal })
    await until('the pod without gates', async () => {
      const { spec } = (await east.get<KubeObject>(gvrs.pods, ref, { signal })) as {
        spec?: { schedulingGates?: unknown[] }
      }
      return (spec?.schedulingGates ?? []).length === 0
    })
    const target = { apiVersion: 'v1', kind: 'Node', name: 'shared' }
    const binding = { apiVersion: 'v1', kind: 'Binding', metadata: ref, target }
    await east.create(gvrs.pods, binding, { subresource: 'binding', signal })
    await until('the node', async () => (await namesShown()).includes('shared'))
    const one = await until('its taints to be removed', async () => {
      const found = (await shown()).find(({ metadata }) => metadata.name === 'shared')
      return (found?.['spec'] as { taints?: unknown } | undefined)?.taints === undefined && found
    })
    expect(one.metadata.labels).to.deep.equal({ 'kubernetes.io/arch': 'amd64' })
    expect(one['status']).to.deep.include({ capacity: { cpu: '4', 'example.com/gpu': '1' }, allocatable: { cpu: '3' } })
    await east.patch(nodes, { name: 'shared' }, 'merge', { spec: { unschedulable: true } }, { signal })
    const capacity = { cpu: '5', 'example.com/gpu': null }
    await east.patch(nodes, { name: 'shared' }, 'merge', { status: { capacity } }, { subresource: 'status', signal })
    await until('the changes', async () => {
      const found = (await shown()).find(({ metadata }) => metadata.name === 'shared')
      const { status, spec } = (found ?? {}) as { status?: { capacity?: object }; spec?: { unschedulable?: boolean } }
      return spec?.unschedulable === true && JSON.stringify(status?.capacity) === '{"cpu":"5"}'
    })
    const all = await shown()
    expect(all.map(({ metadata }) => metadata.name).filter((name) => name !== 'played')).to.deep.equal(['shared'])
    for (const text of [secret, '192.0.2.77']) expect(JSON.stringify(all)).to.not.contain(text)
    await up.delete(gvrs.pods, { namespace, name: 'on-shared' }, { gracePeriodSeconds: 0, signal })
    await until('the node to be shown no longer', async () => !(await namesShown()).includes('shared'))
  })
})
