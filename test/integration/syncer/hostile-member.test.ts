// A member whose admin writes there whatever makes its syncer speak for workloads that it does not have. kcp start with
// two real API servers and their controllers as members: one is honest and runs the workloads.
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { KubeClient } from '#client/index.ts'
import { gvrs } from '#syncer/context/resources.ts'
import { isLongRun, runKcp, startCluster, waitFor } from '#test/support/index.ts'
import { startInstance, type KcpInstance, type Tenant } from '#test/integration/kcp-instance.ts'
import {
  contentOf,
  differences,
  forgedReplicaSet,
  forgedRevision,
  Forger,
  forgeries,
  mark,
  nodesOf,
  refuseDeletions,
  untilSeen,
  victims,
  type Target,
} from './forgeries.ts'
import { clientOf } from './ordinary-upstream.ts'
import { simulateKubelet } from './played-member.ts'

const { signal } = new AbortController()

/** What the scheduler has decided about the member, for the namespace that is attacked. */
const situations = [
  { title: 'may not be used by the logical cluster', tenant: 'closed', namespace: 'shop' },
  { title: 'runs nothing of the namespace', tenant: 'acme', namespace: 'away' },
  { title: 'runs another workload of the namespace', tenant: 'acme', namespace: 'mixed', neighbour: true },
  { title: 'names other uids', tenant: 'acme', namespace: 'foreign', neighbour: true, otherUid: true },
  { title: 'ran the workloads until they were deleted', tenant: 'acme', namespace: 'ended', ranBefore: true },
] as const

const oneByOne = forgeries.map(({ title, write }) => ({ what: title, writes: [write] }))
const together = [{ what: 'all forgeries together', writes: forgeries.map(({ write }) => write) }]

describe('a member whose admin forges what comes up', function () {
  this.timeout(120_000)
  const stack = new AsyncDisposableStack()
  const life = new AbortController()
  const clients: Record<string, KubeClient> = {}
  const tenants: Record<string, Tenant> = {}
  const ids: Record<string, string> = {}
  let kcp: KcpInstance
  let evil: KubeClient
  let east: KubeClient

  const objects = async (tenant: string, namespace: string): Promise<Record<string, unknown>> =>
    contentOf(clients[tenant]!, namespace, signal)
  const apply = async (tenant: string, namespace: string, items: readonly KubeObject[]): Promise<void> => {
    const list = { apiVersion: 'v1', kind: 'List', items }
    await tenants[tenant]!.kubectl(['-n', namespace, 'apply', '-f', '-'], { input: list })
  }
  const ready = async (tenant: string, namespace: string): Promise<void> => {
    const wait = (...what: string[]) =>
      tenants[tenant]!.kubectl(['-n', namespace, 'wait', '--timeout=90s', ...what], { timeoutMs: 100_000 })
    await wait('--for=condition=Available', 'deployment/web')
    await wait('--for=jsonpath={.status.readyReplicas}=1', 'statefulset/db')
    await wait('--for=jsonpath={.status.numberReady}=1', 'daemonset/agent')
    await wait('--for=condition=Ready', 'pod/alone')
    await waitFor(
      async () => {
        const labelSelector = 'kubernetes.io/service-name in (web, db)'
        const slices = await clients[tenant]!.list<KubeObject>(gvrs.endpointslices, {
          namespace,
          labelSelector,
          signal,
        })
        const count = slices.items.flatMap(
          (slice) => (slice['endpoints'] ?? []) as { conditions?: { ready?: boolean } }[],
        )
        return count.filter(({ conditions }) => conditions?.ready).length === 3
      },
      { what: `three endpoints in ${namespace}`, deadlineMs: 60_000 },
    )
  }
  /** Resolves when nothing has changed for a moment. */
  const settled = async (tenant: string, namespace: string): Promise<Record<string, unknown>> => {
    let before = ''
    return await waitFor(
      async () => {
        const content = await objects(tenant, namespace)
        const text = JSON.stringify(content)
        const isSame = text === before
        before = text
        return isSame && content
      },
      { what: `${namespace} to be at rest`, deadlineMs: 60_000, intervalMs: 1500 },
    )
  }
  const own = (): KubeObject => ({
    ...{ apiVersion: 'apps/v1', kind: 'Deployment' },
    metadata: { name: 'own', annotations: { 'kcp.dev/clusters': 'evil' } },
    spec: {
      selector: { matchLabels: { app: 'own' } },
      template: {
        metadata: { labels: { app: 'own' } },
        spec: { containers: [{ name: 'app', image: 'example/own:1' }] },
      },
    },
  })

  before(async function () {
    this.timeout(900_000)
    const starting = ['east', 'evil'].map(async (name) =>
      stack.use(await startCluster({ name, controllerManager: true })),
    )
    kcp = stack.use(await startInstance())
    const started = await Promise.all(starting)
    stack.defer(() => life.abort())
    for (const [index, cluster] of started.entries()) {
      const { name } = cluster
      const client = await clientOf(cluster.kubeconfig, stack)
      simulateKubelet(client, { subnet: `10.9${index}.0`, signal: life.signal })
      await runKcp(['member', 'join', name, '--kubeconfig', cluster.kubeconfig, '--root-dir', kcp.rootDir])
      await kcp.admin.kubectl(['wait', '--for=condition=Ready', `mc/${name}`, '--timeout=60s'])
      if (name === 'east') east = client
      else evil = client
      const spec = { serviceNetwork: { type: 'Flat' } }
      await kcp.admin.kubectl(['patch', `mc/${name}`, '--type=merge', '-p', JSON.stringify({ spec })])
    }
    for (const name of ['closed', 'acme']) {
      const tenant = await kcp.tenant(name)
      tenants[name] = tenant
      clients[name] = await clientOf(tenant.kubeconfig, stack)
      ids[name] = (await kcp.admin.kubectl(['get', 'lc', name, '-o', 'jsonpath={.status.id}'])).stdout
    }
    await kcp.admin.kubectl(['label', 'lc/acme', 'evil=welcome'])
    const welcome = { spec: { logicalClusterSelector: { matchLabels: { evil: 'welcome' } } } }
    await kcp.admin.kubectl(['patch', 'mc/evil', '--type=merge', '-p', JSON.stringify(welcome)])
    await refuseDeletions(evil, signal)
    await tenants['acme']!.kubectl(['create', 'namespace', 'signs'])
    await apply('acme', 'signs', [own()])
    for (const situation of situations) {
      const { tenant, namespace } = situation
      await tenants[tenant]!.kubectl(['create', 'namespace', namespace])
      if ('ranBefore' in situation) {
        await apply(tenant, namespace, victims('evil'))
        await ready(tenant, namespace)
      } else await apply(tenant, namespace, victims('east'))
      if ('neighbour' in situation) await apply(tenant, namespace, [own()])
    }
    for (const situation of situations) {
      const { tenant, namespace } = situation
      await ready(tenant, namespace)
      const wait = ['wait', '--for=condition=Available', 'deployment/own', '--timeout=60s']
      if ('neighbour' in situation) await tenants[tenant]!.kubectl(['-n', namespace, ...wait])
    }
    await tenants['acme']!.kubectl([
      '-n',
      'signs',
      'wait',
      '--for=condition=Available',
      'deployment/own',
      '--timeout=60s',
    ])
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  for (const situation of situations) {
    const { title, tenant, namespace } = situation
    describe(`and which ${title}`, () => {
      let forger: Forger
      let rest: Record<string, unknown>
      let nodes: readonly (string | undefined)[]

      before(async function () {
        this.timeout(400_000)
        const client = clients[tenant]!
        const uids = new Map<string, string>()
        const learn = async (): Promise<void> => {
          for (const { kind, metadata } of victims('')) {
            const resource = (kind === 'Ingress' ? 'ingresses' : `${kind.toLowerCase()}s`) as keyof typeof gvrs
            const found = await client.get<KubeObject>(
              gvrs[resource],
              { namespace, name: metadata.name ?? '' },
              { signal },
            )
            uids.set(`${kind}/${metadata.name}`, found.metadata.uid ?? '')
          }
          const found = await client.get<KubeObject>(gvrs.namespaces, { name: namespace }, { signal })
          uids.set(`Namespace/${namespace}`, found.metadata.uid ?? '')
        }
        await learn()
        if ('ranBefore' in situation) {
          const all = 'deployments,statefulsets,daemonsets,cronjobs,pods,persistentvolumeclaims'
          await tenants[tenant]!.kubectl(['-n', namespace, 'delete', all, '--all', '--timeout=90s'], {
            timeoutMs: 100_000,
          })
          await apply(tenant, namespace, victims('east'))
          await ready(tenant, namespace)
        }
        const uidOf = (kind: string, name: string): string => {
          const known = uids.get(`${kind}/${name}`) ?? ''
          return 'otherUid' in situation && kind !== 'Namespace' ? known.replace(/^.{8}/, '66666666') : known
        }
        const target: Target = { cluster: tenant, clusterId: ids[tenant]!, namespace, uidOf }
        forger = new Forger(evil, target, signal)
        await forger.begin()
        rest = await settled(tenant, namespace)
        nodes = await nodesOf(client, signal)
      })

      // Each alone in `make test-long`, which says better what is wrong.
      for (const { what, writes } of isLongRun ? oneByOne : together)
        it(`shows nothing of ${what}`, async () => {
          for (const write of writes) await write(forger)
          const sign = { member: evil, up: clients['acme']!, below: `${ids['acme']}-signs`, namespace: 'signs' }
          await untilSeen({ ...sign, deployment: 'own' }, signal)
          expect(differences(rest, await objects(tenant, namespace))).to.deep.equal([])
          expect(await nodesOf(clients[tenant]!, signal)).to.deep.equal(nodes)
        })

      it('reaches no other member', async () => {
        const below = { namespace: `${ids[tenant]}-${namespace}`, signal }
        for (const resource of ['endpointslices', 'pods', 'replicasets', 'configmaps'] as const)
          expect(JSON.stringify((await east.list(gvrs[resource], below)).items)).not.to.match(
            /forged-by-evil|203\.0\.113\.66/,
          )
        const { stdout } = await kcp.admin.kubectl(['get', 'mc', 'east', '-o', 'json'])
        expect(stdout).not.to.include(mark)
      })
    })
  }

  describe('and which runs the workloads', () => {
    const namespace = 'runs'
    let below: string
    const sign = () => ({
      ...{ member: evil, up: clients['acme']!, below: `${ids['acme']}-signs`, namespace: 'signs', deployment: 'own' },
    })
    const copyOf = (resource: 'deployments' | 'statefulsets', name: string) =>
      evil.get<KubeObject>(gvrs[resource], { namespace: below, name }, { signal })
    const forger = () =>
      new Forger(evil, { cluster: 'acme', clusterId: ids['acme']!, namespace, uidOf: () => '' }, signal)
    const shown = async (resource: keyof typeof gvrs): Promise<string> =>
      JSON.stringify((await clients['acme']!.list(gvrs[resource], { namespace, signal })).items)

    before(async function () {
      this.timeout(400_000)
      below = `${ids['acme']}-${namespace}`
      await tenants['acme']!.kubectl(['create', 'namespace', namespace])
      await apply('acme', namespace, victims('evil'))
      const other = own()
      const labels = { app: 'other' }
      const container = { name: 'app', image: 'example/own:1' }
      await apply('acme', namespace, [
        {
          ...other,
          metadata: { name: 'other', annotations: { 'kcp.dev/clusters': 'east' } },
          spec: {
            selector: { matchLabels: labels },
            template: { metadata: { labels }, spec: { containers: [container] } },
          },
        },
        {
          ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'other' } },
          spec: { selector: labels, ports: [{ port: 80 }] },
        },
      ])
      await ready('acme', namespace)
    })

    it('no template that its tenant did not write comes into the history', async () => {
      const [web, db] = [await copyOf('deployments', 'web'), await copyOf('statefulsets', 'db')]
      await forgedReplicaSet(forger(), web)
      await forgedRevision(forger(), db)
      await untilSeen(sign(), signal)
      for (const resource of ['replicasets', 'controllerrevisions', 'pods'] as const)
        expect(await shown(resource)).not.to.include(mark)
      const history = await clients['acme']!.list<KubeObject>(gvrs.replicasets, { namespace, signal })
      expect(history.items.filter(({ metadata }) => metadata.name?.startsWith('web-'))).to.have.length(1)
    })

    it('a Service of another workload gets no endpoint', async () => {
      const { items } = await evil.list<KubeObject>(gvrs.pods, { namespace: below, labelSelector: 'app=web', signal })
      const pod = items[0]!
      const relabelled = { metadata: { labels: { app: 'other' } } }
      await evil.patch(gvrs.pods, { namespace: below, name: pod.metadata.name ?? '' }, 'merge', relabelled, { signal })
      await waitFor(
        async () => {
          const slices = await evil.list<KubeObject>(gvrs.endpointslices, {
            ...{ namespace: below, labelSelector: 'kubernetes.io/service-name=other', signal },
          })
          return JSON.stringify(slices.items).includes(pod.metadata.name ?? '')
        },
        { what: 'the endpoint in the member', deadlineMs: 30_000 },
      )
      await untilSeen(sign(), signal)
      const slices = await clients['acme']!.list<KubeObject>(gvrs.endpointslices, {
        ...{ namespace, labelSelector: 'kubernetes.io/service-name=other', signal },
      })
      expect(JSON.stringify(slices.items)).not.to.include(pod.metadata.name)
    })

    it('no claim of an ordinal that it does not have comes up', async () => {
      for (const name of ['data-db-7', 'data-other-0'])
        await forger().create('persistentvolumeclaims', {
          ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim' },
          metadata: { name, namespace: below, labels: { 'kcp.dev/managed': 'true' } },
          spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
        })
      await untilSeen(sign(), signal)
      const claims = await clients['acme']!.list<KubeObject>(gvrs.persistentvolumeclaims, { namespace, signal })
      expect(claims.items.map(({ metadata }) => metadata.name)).to.deep.equal(['data-db-0'])
    })
  })
})
