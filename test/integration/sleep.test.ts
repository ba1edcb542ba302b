// Sleep of a logical cluster beside a real member, whose controllers make pods and which has no node: what runs ends,
// what is there stays, and the first write of its users brings everything back.
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { placedOn, type LogicalCluster } from '#crds/index.ts'
import { runKcp, startCluster, waitFor, type Cluster, type CommandResult } from '#test/support/index.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

const within = { deadlineMs: 60_000, intervalMs: 200 }
const labels = (app: string): object => ({ matchLabels: { app } })
const template = (app: string, more: object = {}): object => ({
  metadata: { labels: { app } },
  spec: { containers: [{ name: 'c', image: 'example/c:1', resources: { requests: { cpu: '10m' } } }], ...more },
})
const object = (apiVersion: string, kind: string, name: string, spec: object): object => ({
  apiVersion,
  kind,
  metadata: { name },
  spec,
})

/** One of each: what sleeps, and what must be there afterwards. */
const objects = [
  object('apps/v1', 'Deployment', 'web', { replicas: 3, selector: labels('web'), template: template('web') }),
  object('apps/v1', 'ReplicaSet', 'set', { replicas: 1, selector: labels('set'), template: template('set') }),
  object('v1', 'ReplicationController', 'old', { replicas: 1, selector: { app: 'old' }, template: template('old') }),
  object('apps/v1', 'StatefulSet', 'db', {
    replicas: 1,
    serviceName: 'db',
    selector: labels('db'),
    template: template('db'),
    persistentVolumeClaimRetentionPolicy: { whenScaled: 'Delete', whenDeleted: 'Delete' },
    volumeClaimTemplates: [
      {
        metadata: { name: 'data' },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      },
    ],
  }),
  object('apps/v1', 'DaemonSet', 'agent', { selector: labels('agent'), template: template('agent') }),
  object('batch/v1', 'CronJob', 'tick', {
    schedule: '0 0 1 1 *',
    jobTemplate: { spec: { template: template('tick', { restartPolicy: 'Never' }) } },
  }),
  object('batch/v1', 'Job', 'work', { template: template('work', { restartPolicy: 'Never' }) }),
  object('v1', 'Pod', 'tool', { containers: [{ name: 'c', image: 'example/c:1' }] }),
  object('v1', 'Service', 'web', { selector: { app: 'web' }, ports: [{ port: 80 }] }),
  object('autoscaling/v2', 'HorizontalPodAutoscaler', 'web', {
    scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
    minReplicas: 2,
    maxReplicas: 5,
    metrics: [{ type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } } }],
  }),
]
const kinds = 'deploy,rs,rc,sts,ds,cronjob,job,svc,hpa,pvc'
const lcPath = (name: string): string => `/clusters/root/apis/kcp.dev/v1alpha1/logicalclusters/${name}`
const merge = ['content-type', 'application/merge-patch+json']

describe('the sleep of a logical cluster', function () {
  this.timeout(90_000)
  const stack = new AsyncDisposableStack()
  let kcp: KcpInstance
  let acme: Tenant
  let other: Tenant
  let east: Cluster
  let space = ''
  let atRest: Map<string, string>

  const until = (what: string, attempt: () => Promise<boolean>): Promise<unknown> =>
    waitFor(async () => (await attempt()) || undefined, { what, ...within })
  const command = (...args: string[]): Promise<CommandResult> => runKcp([...args, '--root-dir', kcp.rootDir])
  const lc = async (): Promise<LogicalCluster> =>
    (await kcp.admin.http.request('GET', lcPath('acme'))).json() as LogicalCluster
  const asleep = async (): Promise<string> => {
    const found = (await lc()).status?.conditions?.find(({ type }) => type === 'Asleep')
    return `${found?.status ?? ''} ${found?.reason ?? ''}`
  }
  const setSleep = async (sleep: object | null): Promise<{ status: number; text: string }> =>
    kcp.admin.http.request('PATCH', lcPath('acme'), { body: { spec: { sleep } }, headers: merge })
  const itemsOf = (text: string): (KubeObject & { spec: Record<string, unknown> })[] =>
    (JSON.parse(text) as { items: (KubeObject & { spec: Record<string, unknown> })[] }).items
  const upstream = async (what: string): Promise<(KubeObject & { spec: Record<string, unknown> })[]> =>
    itemsOf((await acme.kubectl(['get', what, '-o', 'json'])).stdout)
  const inEast = async (what: string): Promise<(KubeObject & { spec: Record<string, unknown> })[]> =>
    itemsOf((await east.kubectl(['get', what, '-n', space, '-o', 'json'])).stdout)
  const podsInEast = async (): Promise<string[]> =>
    (await inEast('pods')).map(({ metadata }) => metadata.labels?.['app'] ?? metadata.name ?? '').sort()
  const allPods = ['agent', 'db', 'old', 'set', 'tool', 'web', 'web', 'web', 'work']
  const write = async (tenant: Tenant, name: string, query = '', headers: string[] = []): Promise<number> => {
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } }
    const path = `/clusters/acme/api/v1/namespaces/default/configmaps${query}`
    return (await tenant.http.request('POST', path, { body, headers })).status
  }
  /** All that tenants wrote, and the identity of what members made for them. */
  const written = async (): Promise<Map<string, string>> =>
    new Map(
      (await upstream(kinds))
        .filter(({ metadata }) => metadata.ownerReferences === undefined || metadata.name?.startsWith('data-'))
        .map(({ kind, metadata: { name, uid, generation }, spec }) => [
          `${kind}/${name ?? ''}`,
          JSON.stringify({ uid, generation, spec }),
        ]),
    )

  before(async function () {
    this.timeout(200_000)
    const flags = { 'kube-controller-manager': ['--horizontal-pod-autoscaler-sync-period=1s'] }
    const [instance, cluster] = await Promise.all([
      startInstance(),
      startCluster({ name: 'east', controllerManager: true, flags }),
    ])
    kcp = stack.use(instance)
    east = stack.use(cluster)
    ;[acme, other] = [await kcp.tenant('acme'), await kcp.tenant('other')]
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } }
    await east.kubectl(['apply', '-f', '-'], { input: node })
    await command('member', 'join', 'east', '--kubeconfig', east.kubeconfig)
    space = `${(await lc()).status?.id ?? ''}-default`
    await acme.kubectl(['apply', '-f', '-'], { input: { apiVersion: 'v1', kind: 'List', items: objects } })
    await until('all pods', async () => (await podsInEast()).join() === allPods.join())
    await until('the claim', async () => (await upstream('pvc')).length === 1)
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  it('ends its pods in the member, and changes nothing that it wrote', async () => {
    await until('the status of all', async () => {
      const [web] = await upstream('deploy')
      return (web?.['status'] as { replicas?: number } | undefined)?.replicas === 3
    })
    atRest = await written()
    expect((await command('sleep', 'acme')).stdout).to.equal(
      'logical cluster "acme" falls asleep, until the first write of its users or kcp wake\n',
    )
    await until('condition Asleep', async () => (await asleep()) === 'True Requested')
    // What a Job has begun it ends, and a pod of its own could not come back.
    await until('the pods to end', async () => (await podsInEast()).join() === 'tool,work')
    const copies = await inEast('deploy,rs,rc,sts')
    expect(new Set(copies.map(({ spec }) => spec['replicas']))).to.deep.equal(new Set([0]))
    const [tick] = await inEast('cronjob')
    expect(tick?.spec['suspend']).to.equal(true)
    const [db] = await inEast('sts')
    expect(db?.spec['persistentVolumeClaimRetentionPolicy']).to.deep.equal({
      whenDeleted: 'Retain',
      whenScaled: 'Retain',
    })
    expect((await inEast('pvc')).map(({ metadata }) => metadata.name)).to.deep.equal(['data-db-0'])
    expect(await written()).to.deep.equal(atRest)
  })

  it('is told to its users: replicas, condition, Event, explanations', async () => {
    const web = async (): Promise<KubeObject & { status?: { replicas?: number; conditions?: { type: string }[] } }> =>
      (await upstream('deploy'))[0] as KubeObject
    await until('no replicas', async () => (await web()).status?.replicas === undefined)
    const { status, metadata } = await web()
    expect((status as { observedGeneration?: number }).observedGeneration).to.equal(metadata.generation)
    expect(placedOn(await web())['east']).to.include({ state: 'Serving', asleep: true })
    const placed = status?.conditions?.find(({ type }) => type === 'Placed')
    expect(placed).to.include({ status: 'True', reason: 'Asleep' })
    expect(JSON.stringify(placed)).to.match(
      /asleep since .*: kcp sleep put it to sleep; the first write of its users wakes it, or kcp wake acme/,
    )
    const events = (await acme.kubectl(['get', 'events', '-o', 'yaml'])).stdout
    expect(events).to.contain('reason: Asleep')
    expect((await kcp.admin.kubectl(['get', 'events', '-o', 'yaml'])).stdout).to.contain('reason: Asleep')
    const explained = (await command('explain', 'deployment/web', '-c', 'acme')).stdout
    expect(explained).to.contain('it is asleep, so its workloads have no pods')
    expect(explained).to.not.match(/of 3 replicas are ready/)
    const placement = (await command('placement', 'explain', 'deployment/web', '-c', 'acme')).stdout
    expect(placement).to.match(/^asleep: +its logical cluster is asleep since/m)
    const columns = (await kcp.admin.kubectl(['get', 'lc', 'acme', '-o', 'wide'])).stdout
    expect(columns).to.match(/ASLEEP/)
    await until('an autoscaler that does nothing', async () =>
      JSON.stringify(await upstream('hpa')).includes('ScalingDisabled'),
    )
  })

  it('goes on through reads, dry runs, questions, and writes of ServiceAccounts, strangers and members', async () => {
    expect((await acme.http.request('GET', `${acme.base}/api/v1/pods`)).status).to.equal(200)
    expect(await write(acme, 'tried', '?dryRun=All')).to.equal(201)
    expect((await acme.kubectl(['auth', 'can-i', 'create', 'pods'])).stdout).to.equal('yes\n')
    expect([401, 403]).to.include(await write(other, 'foreign'))
    const robot = ['impersonate-user', 'system:serviceaccount:default:robot', 'impersonate-group', 'system:masters']
    expect(await write(acme, 'by-account', '', robot)).to.equal(201)
    await east.kubectl(['scale', 'deploy/web', '-n', space, '--replicas=4'])
    await until('the correction', async () => (await inEast('deploy'))[0]?.spec['replicas'] === 0)
    expect(await asleep()).to.equal('True Requested')
  })

  it('ends with the first write, which is answered at once, and nothing is lost', async () => {
    expect(await write(acme, 'first')).to.equal(201)
    await until('condition Asleep', async () => (await asleep()) === 'False WokenByWrite')
    await until('all pods', async () => (await podsInEast()).join() === allPods.join())
    const [db] = await inEast('sts')
    expect(db?.spec['persistentVolumeClaimRetentionPolicy']).to.deep.equal({
      whenDeleted: 'Delete',
      whenScaled: 'Delete',
    })
    expect((await inEast('cronjob'))[0]?.spec['suspend']).to.equal(false)
    expect(await written()).to.deep.equal(atRest)
    await until('the status of all', async () => {
      const [web] = await upstream('deploy')
      const { replicas, conditions = [] } = web?.['status'] as { replicas?: number; conditions?: { type: string }[] }
      return replicas === 3 && !conditions.some(({ type }) => type === 'Placed')
    })
  })

  it('is held by its admins against writes, and can be forbidden', async () => {
    await command('sleep', 'acme', '--hold')
    await until('condition Asleep', async () => (await asleep()) === 'True Held')
    expect(await write(acme, 'second')).to.equal(201)
    await until('the pods to end', async () => (await podsInEast()).join() === 'tool,work')
    expect(await asleep()).to.equal('True Held')
    await command('wake', 'acme', '--hold')
    await until('condition Asleep', async () => (await asleep()) === 'False KeptAwake')
    await command('sleep', 'acme')
    await until('condition Asleep', async () => (await asleep()) === 'True Requested')
    await command('wake', 'acme')
    await until('condition Asleep', async () => (await asleep()) === 'False WokenByHand')
    expect((await setSleep(null)).status).to.equal(200)
    await until('no condition', async () => (await asleep()) === ' ' && (await lc()).status?.sleep === undefined)
  })

  it('has rules that are checked, with an answer that says what to do', async () => {
    for (const [sleep, expected] of [
      [{ afterIdle: '30s' }, /spec.sleep.afterIdle: .*must be at least 1m/],
      [{ afterIdle: 'soon' }, /spec.sleep.afterIdle: .*should match/],
      [{ schedule: {} }, /give sleep, wake, or both/],
      [{ schedule: { sleep: '61 * * * *' } }, /spec.sleep.schedule.sleep: .*should match/],
      [{ schedule: { wake: '0 7 * *' } }, /spec.sleep.schedule.wake: .*should match/],
      [{ schedule: { wake: '0 7 * * mon-fri', timeZone: 'Mars/Olympus' } }, /time zone/],
      [{ asleep: 'yes' }, /spec.sleep.asleep/],
    ] as const) {
      const { status, text } = await setSleep(sleep)
      expect([status, text]).to.satisfy(
        ([code, message]: [number, string]) => code === 422 && expected.test(message),
        `${JSON.stringify(sleep)}: ${String(status)} ${text}`,
      )
    }
    const { status, text } = await setSleep({
      ...{ afterIdle: '1h30m', activity: { serviceAccounts: 'Count', ignoreUsers: ['argocd'] } },
      schedule: { sleep: '0 20 * * MON-FRI', wake: '30 6 * * 1-5', timeZone: 'Europe/Berlin' },
    })
    expect(status, text).to.equal(200)
  })
})
