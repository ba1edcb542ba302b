// A three-tier application as a Helm chart, installed unchanged by two tenants under the same names, on real members
// with pods: it runs, the daily commands work on it, and nothing is left of it.
import { expect } from 'chai'
import { join } from 'node:path'
import {
  ensurePrograms,
  itInLongRun,
  kubectl,
  kubectlEnvironment,
  needsNodes,
  repositoryRoot,
  startProcess,
  waitFor,
  type Cluster,
  type CommandResult,
} from '#test/support/index.ts'
import { createHelm, type Helm } from './helm.ts'
import { createLogicalCluster, idOf, installWithoutHost, type Installation } from './installation.ts'
import { endLabAfterAll, lab, type Lab } from './lab.ts'
import { untilClean } from './until-clean.ts'
import { namespace, staticVolume } from './workload-manifests.ts'

interface Found {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly uid: string; readonly labels?: Readonly<Record<string, string>> }
  readonly spec?: Record<string, unknown>
  readonly data?: unknown
  readonly status?: Readonly<Record<string, unknown>>
}

const space = 'shop'
const chart = join(repositoryRoot, 'test', 'e2e', 'application-chart')
const volumes = ['files', 'data-0', 'data-1', 'files-of-bob', 'data-of-bob'].map((name) => `application-${name}`)

endLabAfterAll()

describe('a three-tier application in members', function () {
  this.timeout(180_000)
  const stack = new AsyncDisposableStack()
  let clusters: Lab
  let installation: Installation
  let helm: Helm
  let alice = ''
  let bob = ''
  let ids: string[] = []

  before(async function () {
    this.timeout(300_000)
    await needsNodes(this)
    clusters = await lab()
    installation = stack.use(await installWithoutHost(clusters))
    helm = stack.use(await createHelm(space))
    await installation.join(clusters.east)
    await installation.join(clusters.west)
    await kubectl(installation.admin, ['wait', '--for=condition=Ready', 'memberclusters', '--all', '--timeout=60s'])
    for (const name of volumes) await clusters.east.kubectl(['apply', '-f', '-'], staticVolume(name))
    for (const [cluster, owner] of [
      ['acme', 'alice'],
      ['globex', 'bob'],
    ] as const)
      await createLogicalCluster(installation, cluster, owner)
    ids = [await idOf(installation, 'acme'), await idOf(installation, 'globex')]
    alice = await installation.tenant('acme', 'alice')
    bob = await installation.tenant('globex', 'bob')
    for (const tenant of [alice, bob]) await kubectl(tenant, ['apply', '-f', '-'], { input: namespace(space, 'east') })
  })
  after(async function () {
    this.timeout(120_000)
    await clusters.east.kubectl(['delete', 'pv', '--ignore-not-found', '--wait=false', ...volumes])
    await stack.disposeAsync()
  })

  const as = (tenant: string, args: string[], options: object = {}): Promise<CommandResult> =>
    kubectl(tenant, ['-n', space, ...args], options)
  const asAlice = (...args: string[]): Promise<CommandResult> => as(alice, args)
  const list = async (tenant: string, kinds: string, ...flags: string[]): Promise<Found[]> =>
    (JSON.parse((await as(tenant, ['get', kinds, '-o', 'json', ...flags])).stdout) as { items: Found[] }).items
  const get = async (kind: string, name: string): Promise<Found> =>
    JSON.parse((await asAlice('get', kind, name, '-o', 'json')).stdout) as Found
  const until = <T>(what: string, attempt: () => Promise<T | undefined | false>, deadlineMs = 60_000): Promise<T> =>
    waitFor(async () => (await attempt()) || undefined, { what, deadlineMs })
  const rolledOut = async (...workloads: string[]): Promise<void> => {
    for (const name of workloads) await asAlice('rollout', 'status', name, '--timeout=90s')
  }
  const below = async (member: Cluster, id: string | undefined, kinds: string): Promise<Found[]> => {
    const { stdout } = await member.kubectl(['get', kinds, '-n', `${id}-${space}`, '-o', 'json'])
    return (JSON.parse(stdout) as { items: Found[] }).items
  }

  /** Compares the chart's live objects with those that the API server would create, without what others may set. */
  const compare = async (tenant: string, ...values: string[]): Promise<void> => {
    const { stdout: manifest } = await helm.run(tenant, 'template', 'shop', chart, ...values)
    await kubectl(tenant, ['create', 'namespace', 'compared'], { expectCode: 'any' })
    const created = await kubectl(tenant, ['create', '--dry-run=server', '-n', 'compared', '-o', 'json', '-f', '-'], {
      input: manifest,
    })
    const wanted = objectsIn(created.stdout)
    expect(wanted.length).to.equal(15)
    const live = objectsIn(
      (await as(tenant, ['get', '--ignore-not-found', '-o', 'json', '-f', '-'], { input: manifest })).stdout,
    )
    const written = (objects: Found[]): unknown[] =>
      objects.map((one) => [one.kind, one.metadata.name, one.data, ofTenant(one)])
    // The Job goes after its time to live.
    const there = wanted.filter(({ kind }) => kind !== 'Job' || live.some((one) => one.kind === kind))
    expect(written(live)).to.deep.equal(written(there))
  }

  it('is installed by helm, which waits until it runs', async () => {
    // A second try begins anew.
    await helm.run(alice, 'uninstall', 'shop', '--ignore-not-found', '--wait', '--timeout', '60s')
    try {
      await helm.run(alice, 'install', 'shop', chart, '--wait', '--timeout', '2m')
    } catch (error) {
      const { stdout } = await asAlice('get', 'deploy,sts,job,pods,pvc,svc,events', '-o', 'wide')
      const inMember = await clusters.east.kubectl([
        'get',
        'deploy,sts,job,pods,pvc,events',
        '-n',
        `${ids[0]}-${space}`,
      ])
      throw new Error(`helm waited for:\n${stdout}\nin the member:\n${inMember.stdout}`, { cause: error })
    }
    const pods = await list(alice, 'pods', '--field-selector=status.phase=Running')
    expect(pods.map(({ metadata }) => metadata.labels?.['app']).sort()).to.include.members([
      'db',
      'db',
      'orders',
      'web',
    ])
    for (const claim of await list(alice, 'pvc')) expect(claim.status?.['phase'], claim.metadata.name).to.equal('Bound')
    await asAlice('wait', '--for=condition=Complete', 'job/migrate', '--timeout=60s')
    await until('the replicas of the autoscaler', async () => {
      const { spec, status } = await get('deployment', 'web')
      return spec?.['replicas'] === 2 && status?.['availableReplicas'] === 2
    })
    await until('the budget', async () => (await get('pdb', 'web')).status?.['disruptionsAllowed'] === 1)
    expect(await below(clusters.west, ids[0], 'pods,services')).to.have.length(0)
  })

  it('is installed by another tenant under the same names, and neither sees the other', async () => {
    const values = ['--set', 'greeting=bob', '--set', 'databases=1']
    await helm.run(bob, 'install', 'shop', chart, '--wait', '--timeout', '2m', ...values)
    const [ofAlice, ofBob] = [await list(alice, 'all,pvc,cm,secret'), await list(bob, 'all,pvc,cm,secret')]
    const uids = new Set(ofAlice.map(({ metadata }) => metadata.uid))
    expect(ofBob.filter(({ metadata }) => uids.has(metadata.uid))).to.have.length(0)
    expect(await greetingOf(alice)).to.equal('hello')
    expect(await greetingOf(bob)).to.equal('bob')
    await as(bob, ['exec', 'db-0', '--', '/agnhost', 'connect', 'db-0.db:8080', '--timeout=5s'])
    const foreign = ['exec', 'db-0', '--', '/agnhost', 'connect', 'db-1.db:8080', '--timeout=5s']
    const refused = await as(bob, foreign, { expectCode: 'any' })
    expect(refused.code).to.not.equal(0)
    expect(refused.stdout + refused.stderr).to.match(/DNS|no such host/i)
    await compare(bob, ...values)
    await helm.run(bob, 'uninstall', 'shop', '--wait', '--timeout', '90s')
    await as(bob, ['delete', 'pvc', '--all', '--timeout=60s'])
  })

  const greetingOf = async (tenant: string): Promise<string> => {
    const path = 'jsonpath={.data.greeting}'
    return (await as(tenant, ['get', 'configmap', 'web', '-o', path])).stdout
  }

  it('shows its logs while they are written, and runs commands with their exit codes', async () => {
    const [pod] = await list(alice, 'pods', '-l', 'app=web')
    const name = pod?.metadata.name ?? ''
    const { kubectl: program } = await ensurePrograms(['kubectl'])
    await using follow = await startProcess({
      name: 'application-logs',
      command: program,
      args: ['--kubeconfig', alice, '-n', space, 'logs', '-f', name],
      env: kubectlEnvironment(alice),
    })
    await until('the first line', async () => follow.log().includes('Started HTTP server'))
    const fetch = `${(await podIp(name)) ?? ''}:8080`
    await asAlice('exec', 'db-0', '--', '/agnhost', 'connect', fetch)
    expect((await asAlice('exec', name, '--', '/agnhost', 'help')).stdout).to.contain('netexec')
    const failing = await as(alice, ['exec', name, '--', '/agnhost', 'no-such-command'], { expectCode: 'any' })
    expect(failing.code).to.equal(1)
    for (const peer of ['web', 'orders.shop', 'db-1.db.shop.svc.cluster.local'])
      await asAlice('exec', name, '--', '/agnhost', 'connect', peer.startsWith('db') ? `${peer}:8080` : `${peer}:80`)
  })

  const podIp = async (name: string): Promise<string | undefined> =>
    (await get('pod', name)).status?.['podIP'] as string | undefined

  // story.ts does this with a Deployment, workloads.test.ts with a StatefulSet.
  itInLongRun('is scaled, restarted and set back', async () => {
    await asAlice('scale', 'deployment/orders', '--replicas=2')
    await rolledOut('deployment/orders')
    expect((await get('deployment', 'orders')).status).to.include({ replicas: 2, availableReplicas: 2 })
    const before = new Set((await list(alice, 'pods', '-l', 'app=orders')).map(({ metadata }) => metadata.uid))
    await asAlice('rollout', 'restart', 'deployment/orders')
    await rolledOut('deployment/orders')
    await until('new pods alone', async () => {
      const now = await list(alice, 'pods', '-l', 'app=orders')
      return now.length === 2 && now.every(({ metadata }) => !before.has(metadata.uid))
    })
    expect((await asAlice('rollout', 'history', 'deployment/orders')).stdout)
      .to.match(/^1\s/m)
      .and.match(/^2\s/m)
    await asAlice('rollout', 'undo', 'deployment/orders')
    await asAlice('rollout', 'restart', 'statefulset/db')
    await rolledOut('deployment/orders', 'statefulset/db')
    await until('both revisions of the StatefulSet', async () =>
      /^2\s/m.test((await asAlice('rollout', 'history', 'statefulset/db')).stdout),
    )
    await asAlice('rollout', 'undo', 'statefulset/db')
    await asAlice('scale', 'deployment/orders', '--replicas=1')
    await rolledOut('deployment/orders', 'statefulset/db')
  })

  it('replaces a pod that its tenant deletes', async () => {
    const [pod] = await list(alice, 'pods', '-l', 'app=orders')
    await asAlice('delete', 'pod', pod?.metadata.name ?? '', '--timeout=60s')
    await until('the next pod', async () => {
      const now = await list(alice, 'pods', '-l', 'app=orders')
      return now.length === 1 && now[0]?.metadata.uid !== pod?.metadata.uid
    })
    await rolledOut('deployment/orders')
  })

  it('runs its CronJob, and its Job is deleted after its time to live', async () => {
    await until(
      'a run',
      async () => (await get('cronjob', 'report')).status?.['lastSuccessfulTime'] !== undefined,
      90_000,
    )
    await asAlice('wait', '--for=delete', 'job/migrate', '--timeout=60s')
  })

  it('is upgraded and rolled back by helm', async () => {
    await helm.run(alice, 'upgrade', 'shop', chart, '--wait', '--timeout', '2m', '--set', 'greeting=again')
    expect(await greetingOf(alice)).to.equal('again')
    await compare(alice, '--set', 'greeting=again')
    await helm.run(alice, 'rollback', 'shop', '1', '--wait', '--timeout', '2m')
    expect(await greetingOf(alice)).to.equal('hello')
    await compare(alice)
    expect((await helm.run(alice, 'status', 'shop')).stdout).to.contain('STATUS: deployed')
  })

  it('leaves nothing in the members when it is uninstalled', async () => {
    await helm.run(alice, 'uninstall', 'shop', '--wait', '--timeout', '90s')
    await until('its pods to end', async () => (await list(alice, 'pods')).length === 0)
    expect((await list(alice, 'pvc')).map(({ metadata }) => metadata.name)).to.deep.equal(['data-db-0', 'data-db-1'])
    await asAlice('delete', 'pvc', '--all', '--timeout=60s')
    for (const member of [clusters.east, clusters.west]) await untilClean(member, ids)
  })
})

/** The objects in a List, or in a sequence of JSON documents, as kubectl create prints them. */
function objectsIn(text: string): Found[] {
  return text
    .split(/(?<=^\})\n(?=\{)/m)
    .map((one) => JSON.parse(one) as Found & { items?: Found[] })
    .flatMap((one) => one.items ?? [one])
}

/** The spec without fields that Kubernetes itself fills in, different for each object. */
function ofTenant({ kind, metadata, spec }: Found): unknown {
  if (spec === undefined) return undefined
  const { clusterIP: _ip, clusterIPs: _ips, volumeName: _volume, ...rest } = spec
  if (kind === 'Deployment' && metadata.name === 'web') delete rest['replicas']
  if (kind !== 'Job') return rest
  const { selector: _selector, template, ...ofJob } = rest
  return { ...ofJob, template: (template as { spec: unknown }).spec }
}
