// The workloads that the scheduler reconciles after a change, counted on a real server beside its own operator.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { createClient, httpTransport, loadKubeconfig, parseKey, type Informer, type KubeClient } from '#client/index.ts'
import { logicalClusters, memberClusters, placements, type MemberCluster } from '#crds/index.ts'
import { sharedInformers } from '#client/index.ts'
import { decide, type Decision } from '#placement/index.ts'
import { enqueueChanges } from '#operator/placement/enqueue.ts'
import { observe } from '#operator/placement/observe.ts'
import { PlacementInputs } from '#operator/placement/placement-inputs.ts'
import { parseWorkloadKey, type WorkloadRef } from '#operator/placement/workload-key.ts'
import { silentLogger } from '#telemetry/index.ts'
import { runKcp, waitFor } from '#test/support/index.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

const names = ['a', 'b', 'c'] as const
type Name = (typeof names)[number]

describe('the scheduler', function () {
  this.timeout(60_000)
  const stack = new AsyncDisposableStack()
  const life = new AbortController()
  const { signal } = life
  const reconciled = new Set<string>()
  let kcp: KcpInstance
  let client: (basePath: string) => KubeClient
  let inputs: PlacementInputs
  let open: () => Promise<PlacementInputs>

  before(async () => {
    kcp = stack.use(await startInstance())
    stack.defer(() => life.abort())
    for (const name of names) await fill(await kcp.tenant(name))
    const file = join(kcp.rootDir, 'all.kubeconfig')
    writeFileSync(file, readFileSync(kcp.admin.kubeconfig, 'utf8').replace('/clusters/root', ''))
    const transport = stack.use(httpTransport(await loadKubeconfig({ file }, { trusted: true })))
    client = (basePath) => createClient(transport, { basePath })
    const clusters = client('/clusters/root')
    const informers = sharedInformers(clusters, { log: silentLogger, signal })
    open = async () => {
      const log = silentLogger
      const tenantInformers = sharedInformers(client('/clusters/*'), { allClusters: true, log, signal })
      const opened = stack.use(new PlacementInputs({ informers, tenantInformers }))
      await opened.synced(signal)
      return opened
    }
    inputs = await open()
    stack.defer(enqueueChanges(inputs, (key) => reconciled.add(objectKeyOf(key))))
    expect([...reconciled].sort(), 'all there is, at the start').to.deep.equal(names.flatMap(workloads))
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  /** The logical clusters whose workloads were reconciled until `isSeen` reports that the change was processed. */
  const reconcilesOf = async (change: () => Promise<unknown>, isSeen: () => boolean): Promise<string[]> => {
    reconciled.clear()
    await change()
    await waitFor(isSeen, { what: 'the change to be heard of', deadlineMs: 20_000, intervalMs: 10 })
    return clustersOf(reconciled)
  }
  const has =
    (informer: Informer<KubeObject>, key: string, is: (object: KubeObject) => boolean = () => true) =>
    () => {
      const found = informer.store.get(key)
      return found !== undefined && is(found as KubeObject)
    }
  const placement = (name: string, spec: object): KubeObject => ({
    apiVersion: 'kcp.dev/v1alpha1',
    kind: 'Placement',
    metadata: { name },
    spec,
  })
  const decisionFor = (key: string): Decision | undefined => {
    const ref = deploymentRef(key)
    const workload = inputs.workload(ref)
    const observed = workload === undefined ? undefined : observe(ref, workload, inputs, Date.now())
    return observed === undefined ? undefined : decide(observed.choice)
  }
  const rejections = (key: string): (string | undefined)[] =>
    (decisionFor(key)?.rejected ?? []).map(({ cluster }) => cluster)

  it("reconciles the workloads of one tenant after a change of that tenant's Placement", async () => {
    const own = client('/clusters/a')
    const informer = inputs.tenantPlacements
    const create = () => own.create(placements, placement('home', { clusters: ['east'] }), { signal })
    expect(await reconcilesOf(create, has(informer, 'a|home'))).to.deep.equal(['a'])
    expect(rejections('a|shop/web')).to.deep.equal(['east'])
    expect(rejections('b|shop/web')).to.deep.equal([])
    const patch = () => own.patch(placements, { name: 'home' }, 'merge', { spec: { clusters: ['west'] } }, { signal })
    const isWest = has(informer, 'a|home', ({ spec }) => JSON.stringify(spec).includes('west'))
    expect(await reconcilesOf(patch, isWest)).to.deep.equal(['a'])
    expect(rejections('a|shop/web')).to.deep.equal(['west'])
    const remove = () => own.delete(placements, { name: 'home' }, { signal })
    expect(await reconcilesOf(remove, () => informer.store.get('a|home') === undefined)).to.deep.equal(['a'])
    expect(rejections('a|shop/web')).to.deep.equal([])
  })

  it("reconciles the selected and formerly selected workloads after a change of an admin's Placement", async () => {
    const clusters = client('/clusters/root')
    const label = (name: Name) => () =>
      clusters.patch(logicalClusters, { name }, 'merge', { metadata: { labels: { tier: name } } }, { signal })
    for (const name of ['a', 'c'] as const) {
      const isLabelled = has(inputs.clusters, name, ({ metadata }) => metadata.labels?.['tier'] === name)
      expect(await reconcilesOf(label(name), isLabelled), 'a label of a logical cluster').to.deep.equal([name])
    }
    const spec = (tier: Name) => ({ clusters: ['east'], logicalClusterSelector: { matchLabels: { tier } } })
    const informer = inputs.adminPlacements
    const create = () => clusters.create(placements, placement('tier', spec('a')), { signal })
    expect(await reconcilesOf(create, has(informer, 'tier'))).to.deep.equal(['a'])
    expect(names.map((name) => rejections(`${name}|shop/web`))).to.deep.equal([['east'], [], []])
    const change = () => clusters.patch(placements, { name: 'tier' }, 'merge', { spec: spec('c') }, { signal })
    const isOfC = has(informer, 'tier', (object) => JSON.stringify(object['spec']).includes('"c"'))
    expect(await reconcilesOf(change, isOfC)).to.deep.equal(['a', 'c'])
    expect(names.map((name) => rejections(`${name}|shop/web`))).to.deep.equal([[], [], ['east']])
  })

  it('reconciles no other workloads after the deletion of a logical cluster', async () => {
    const remove = () => client('/clusters/root').delete(logicalClusters, { name: 'c' }, { signal })
    const isGone = () =>
      [...inputs.workloadKeysInCluster('c')].length === 0 && inputs.clusters.store.get('c') === undefined
    reconciled.clear()
    await remove()
    await waitFor(isGone, { what: 'the end', deadlineMs: 30_000, intervalMs: 10 })
    expect([...reconciled].filter((key) => key.startsWith('b|'))).to.deep.equal([])
    expect([...inputs.workloadKeysInCluster('b')].map(objectKeyOf).sort()).to.deep.equal(workloads('b'))
  })

  it('reconciles all workloads after a change of a member or of a Placement that selects all', async () => {
    const clusters = client('/clusters/root')
    const create = () => clusters.create(placements, placement('all', { clusters: ['east'], priority: 5 }), { signal })
    expect(await reconcilesOf(create, has(inputs.adminPlacements, 'all'))).to.deep.equal(['a', 'b'])
    const member = { apiVersion: 'kcp.dev/v1alpha1', kind: 'MemberCluster', metadata: { name: 'east' }, spec: {} }
    const join = () => clusters.create(memberClusters, member, { signal })
    expect(await reconcilesOf(join, has(inputs.members, 'east'))).to.deep.equal(['a', 'b'])
  })

  it('is explained, and asked what a drain would do, by commands that write nothing', async () => {
    const run = async (...args: string[]): Promise<string> =>
      (await runKcp([...args, '--root-dir', kcp.rootDir], { expectCode: 0 })).stdout
    const explained = await run('placement', 'explain', 'deployment/web', '--cluster', 'a', '-n', 'shop')
    const lines = explained.replace(/ since [^)]*/, '').split('\n')
    expect(lines.slice(0, 4)).to.deep.equal([
      'asked for: east (by Placement "all")',
      'placed on: east (Held)',
      'wanted:    undecided',
      'held:      ClusterNotReady: member cluster "east" is not Ready',
    ])
    expect(explained).to.contain('  east: Ready=0 Prefer=0 NotTainted=1 FewCopies=')
    expect(await run('drain', 'east', '--dry-run')).to.equal('0 workloads in "east": 0 would stay\n')
    const unknown = await runKcp(['drain', 'mars', '--root-dir', kcp.rootDir], { expectCode: 1 })
    expect(unknown.stderr).to.contain('there is no MemberCluster "mars"')
    const state = async (): Promise<unknown> => {
      const found = await client('/clusters/root').get<MemberCluster>(memberClusters, { name: 'east' }, { signal })
      return found.spec?.state
    }
    expect(await state()).to.equal('Active')
    await run('drain', 'east')
    expect(await state()).to.equal('Draining')
    await run('drain', 'east', '--undo')
    expect(await state()).to.equal('Active')
  })

  it('reconciles all workloads once after a restart', async () => {
    const again = await open()
    const seen = new Set<string>()
    enqueueChanges(again, (key) => seen.add(objectKeyOf(key)))()
    expect([...seen].sort()).to.deep.equal([...workloads('a'), ...workloads('b')])
    expect([...again.workloadKeysInCluster('a')].map(objectKeyOf).sort()).to.deep.equal(workloads('a'))
  })
})

/** The informer's key in a key of the placement queue. */
function objectKeyOf(key: string): string {
  return parseWorkloadKey(key)?.objectKey ?? key
}

function deploymentRef(objectKey: string): WorkloadRef {
  const ref = parseWorkloadKey(`deployments ${objectKey}`)
  if (ref === undefined) throw new Error('deployments are not a workload')
  return ref
}

/** The logical clusters of the reconciled workloads; expects that all workloads of each one were reconciled. */
function clustersOf(reconciled: ReadonlySet<string>): string[] {
  const clusters = [...new Set([...reconciled].map((key) => parseKey(key).cluster ?? ''))].sort()
  expect([...reconciled].sort()).to.deep.equal(clusters.flatMap(workloads))
  return clusters
}

/** Creates three workloads in two namespaces, which Placements of the tenant are about. */
async function fill(tenant: Tenant): Promise<void> {
  for (const namespace of ['shop', 'tools']) await tenant.kubectl(['create', 'namespace', namespace])
  for (const key of workloads(tenant.name)) {
    const { namespace = '', name } = parseKey(key)
    await tenant.kubectl(['create', 'deployment', name, '--image=none', '-n', namespace])
  }
}

function workloads(cluster: string): string[] {
  return [`${cluster}|shop/api`, `${cluster}|shop/web`, `${cluster}|tools/ci`]
}
