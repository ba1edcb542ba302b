// A drain of a member that runs forty applications of all kinds, with real controllers and pods that only report that
// they run: what the dry run says beforehand is what happens, nothing serving goes down, and the member is then deleted
// and clean.
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { memberControllers } from '#cli/roles/member-controllers.ts'
import { createInformer, loadKubeconfig, sharedInformers, type KubeClient } from '#client/index.ts'
import { kcpCrds, memberClusters, placedOn, workloadKinds, type MemberCluster } from '#crds/index.ts'
import { ensureCrds, PlacementInputs, previewDrain, startOperator } from '#operator/index.ts'
import { joinMember } from '#syncer/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import { createPki, createPkiMaterial } from '#virtualapi/index.ts'
import { startCluster, waitFor, type Cluster } from '#test/support/index.ts'
import { asWildcard, clientOf } from '#test/integration/syncer/ordinary-upstream.ts'
import { simulateKubelet } from '#test/integration/syncer/played-member.ts'

const signal = new AbortController().signal
const core = (resource: string) => ({ group: '', version: 'v1', resource })
const namespaces = core('namespaces')
const claims = core('persistentvolumeclaims')
const deployments = { group: 'apps', version: 'v1', resource: 'deployments' }
/**
 * So many applications of each kind: forty in all. `claimed` are Deployments with a volume, which binds them to its
 * member.
 */
const kinds = { Deployment: 16, StatefulSet: 8, DaemonSet: 5, Job: 3, CronJob: 4, claimed: 4 } as const

describe('a drain of forty applications', function () {
  this.timeout(400_000)
  const stack = new AsyncDisposableStack()
  let host: KubeClient
  let up: KubeClient
  const members: Record<string, { client: KubeClient; cluster: Cluster }> = {}

  before(async function () {
    this.timeout(300_000)
    const life = new AbortController()
    const flags = { 'kube-apiserver': ['--disable-admission-plugins=ServiceAccount'] }
    host = await clientOf(stack.use(await startCluster({ name: 'host' })).kubeconfig, stack)
    up = await clientOf(stack.use(await startCluster({ name: 'up', flags })).kubeconfig, stack)
    for (const client of [host, up]) await ensureCrds(client, { crds: kcpCrds(), signal })
    for (const [index, name] of ['east', 'west'].entries()) {
      const cluster = stack.use(await startCluster({ name, controllerManager: true }))
      const client = await clientOf(cluster.kubeconfig, stack)
      members[name] = { client, cluster }
      simulateKubelet(client, { subnet: `10.9${index}.0`, signal: life.signal })
    }
    const acme = { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name: 'acme' } }
    await host.create({ group: 'kcp.dev', version: 'v1alpha1', resource: 'logicalclusters' }, acme, { signal })
    const controllers = memberControllers({ advertise: { host: 'kcp.example', port: 7443 }, drainSeconds: 3 })
    stack.use(
      await startOperator({
        clusters: host,
        virtual: (basePath) => (basePath === '/clusters/*' ? asWildcard(up, 'acme') : up),
        urls: () => ({ url: 'https://kcp.example' }),
        issuer: createPki(await createPkiMaterial()),
        controllers: controllers.filter(({ name }) => name !== 'logical-cluster'),
        log: silentLogger,
        signal: life.signal,
      }),
    )
    stack.defer(() => life.abort())
    await join('east')
    for (const [kind, count] of Object.entries(kinds))
      for (let i = 0; i < count; i++) await create(kind as keyof typeof kinds, `${kind.toLowerCase()}-${i}`)
    await until('all to run in east', async () => {
      const states = await placements()
      return states.size === 40 && [...states.values()].every((state) => state === 'east Serving')
    })
    await join('west')
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  const until = (what: string, attempt: () => Promise<boolean>): Promise<unknown> =>
    waitFor(async () => (await attempt()) || undefined, { what, deadlineMs: 180_000, intervalMs: 500 })
  const member = (name: string): Promise<MemberCluster> => host.get<MemberCluster>(memberClusters, { name }, { signal })
  const join = async (name: string): Promise<void> => {
    const memberKubeconfig = await loadKubeconfig({ file: members[name]!.cluster.kubeconfig }, { trusted: true })
    await joinMember({ name, memberKubeconfig, clusters: host, serviceNetwork: 'Flat', log: silentLogger, signal })
    await until(`${name} to be Ready`, async () =>
      Boolean(
        (await member(name)).status?.conditions?.some(
          ({ type, status }) => type === 'Schedulable' && status === 'True',
        ),
      ),
    )
  }
  /** Where each application is, by `KIND/NAME`. */
  const placements = async (): Promise<Map<string, string>> => {
    const found = new Map<string, string>()
    for (const { kind, gvr } of workloadKinds)
      for (const object of (await up.list<KubeObject>(gvr, { signal })).items) {
        const copies = Object.entries(placedOn(object)).map(([name, { state }]) => `${name} ${state}`)
        // Pods and Jobs that a controller of a member made are none.
        if (copies.length > 0) found.set(`${kind}/${object.metadata.name}`, copies.join())
      }
    return found
  }
  const create = async (of: keyof typeof kinds, name: string): Promise<void> => {
    const namespace = name
    const kind = of === 'claimed' ? 'Deployment' : of
    await up.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }, { signal })
    const labels = { app: name }
    const selector = { matchLabels: labels }
    const volumes = of === 'claimed' ? [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }] : []
    if (of === 'claimed') {
      const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } }
      const claim = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'data', namespace }, spec }
      await up.create(claims, claim, { signal })
    }
    const podSpec = { containers: [{ name: 'c', image: 'example/c:1' }], volumes }
    const template = { metadata: { labels }, spec: podSpec }
    const runsOnce = { spec: { ...podSpec, restartPolicy: 'Never' } }
    const specs: Record<typeof kind, object> = {
      Deployment: { replicas: 2, selector, template },
      StatefulSet: { replicas: 2, selector, template, serviceName: name },
      DaemonSet: { selector, template },
      Job: { template: runsOnce },
      CronJob: { schedule: '0 0 1 1 *', jobTemplate: { spec: { template: runsOnce } } },
    }
    const row = workloadKinds.find((one) => one.kind === kind)!
    const apiVersion = row.gvr.group === '' ? row.gvr.version : `${row.gvr.group}/${row.gvr.version}`
    await up.create(row.gvr, { apiVersion, kind, metadata: { name, namespace }, spec: specs[kind] }, { signal })
  }

  it('does what its dry run says, shows its progress, and takes nothing down that can serve elsewhere', async () => {
    const life = new AbortController()
    const options = { log: silentLogger, signal: life.signal }
    using inputs = new PlacementInputs({
      informers: sharedInformers(host, options),
      tenantInformers: sharedInformers(asWildcard(up, 'acme'), { ...options, allClusters: true }),
    })
    await inputs.synced(signal)
    const preview = previewDrain(inputs, 'east')
    expect(preview).to.have.length(40)
    const stay = preview.filter(({ to }) => to.length === 0)
    expect(stay.map(({ kind, name }) => `${kind}/${name}`).sort()).to.deep.equal(
      [
        ...['claimed-0', 'claimed-1', 'claimed-2', 'claimed-3'].map((name) => `Deployment/${name}`),
        ...['job-0', 'job-1', 'job-2'].map((name) => `Job/${name}`),
      ].sort(),
    )
    for (const { name, blockedBy } of stay) expect(blockedBy, name).to.match(/\w{3}/)

    const gaps: string[] = []
    const watched = createInformer<KubeObject>({ ...options, client: up, gvr: deployments })
    await watched.synced(signal)
    watched.onChange(({ key, after }) => {
      const { availableReplicas = 0 } = (after?.['status'] ?? {}) as { availableReplicas?: number }
      if (after !== undefined && availableReplicas < 2) gaps.push(`${key}: ${availableReplicas}`)
    })
    await host.patch(memberClusters, { name: 'east' }, 'merge', { spec: { state: 'Draining' } }, { signal })
    const progress = new Set<number>()
    await until('what can go to have gone', async () => {
      const { status } = await member('east')
      if (status?.moving !== undefined) progress.add(status.moving)
      return status?.moving === 0 && status.held === stay.length
    })
    expect(progress.size, 'numbers of moving applications that were shown').to.be.greaterThan(1)
    const { status } = await member('east')
    expect(status?.remaining?.map(({ kind, name }) => `${kind}/${name}`).sort()).to.deep.equal(
      stay.map(({ kind, name }) => `${kind}/${name}`).sort(),
    )
    for (const { name, message } of status?.remaining ?? []) expect(message, name).to.match(/\w{3}/)
    const where = await placements()
    for (const { kind, name, to } of preview)
      if (to.length > 0) expect(where.get(`${kind}/${name}`), name).to.equal(`${to.join()} Serving`)
    expect(gaps, 'Deployments that had fewer pods than they ask for').to.deep.equal([])
    life.abort()
  })

  it('ends when what is left is deleted, and leaves the member clean', async () => {
    for (const name of ['job-0', 'job-1', 'job-2', 'claimed-0', 'claimed-1', 'claimed-2', 'claimed-3']) {
      const [gvr, kind] = name.startsWith('job')
        ? [workloadKinds.find((one) => one.kind === 'Job')!.gvr, 'Job']
        : [deployments, 'Deployment']
      await up.delete(gvr, { namespace: name, name }, { propagationPolicy: 'Background', signal })
      await until(`${kind} ${name} to be gone`, async () => !(await placements()).has(`${kind}/${name}`))
      if (kind !== 'Deployment') continue
      const claim = { namespace: name, name: 'data' }
      // No controller of this cluster removes the finalizer that protects claims in use.
      await up.patch(claims, claim, 'merge', { metadata: { finalizers: null } }, { signal })
      await up.delete(claims, claim, { signal })
    }
    await until('the drain to end', async () =>
      Boolean(
        (await member('east')).status?.conditions?.some(({ type, status }) => type === 'Drained' && status === 'True'),
      ),
    )
    await host.delete(memberClusters, { name: 'east' }, { signal })
    await until('its end', async () => (await host.tryGet(memberClusters, { name: 'east' }, { signal })) === undefined)
    const { client } = members['east']!
    await until('the member to be clean', async () => {
      const { items } = await client.list<KubeObject>(namespaces, { signal })
      return !items.some(({ metadata: { name = '', labels } }) => name === 'kcp-system' || labels?.['kcp.dev/managed'])
    })
  })
})
