// Applications that run in a real member, under load, become those of a logical cluster: no pod starts again and no
// request fails. Then they move to another member, or the member gets them back.
import { expect } from 'chai'
import { rm } from 'node:fs/promises'
import { kubectl, needsNodes, runKcp, waitFor, type Cluster, type CommandResult } from '#test/support/index.ts'
import { createHelm, type Helm } from './helm.ts'
import { createLogicalCluster, idOf, installWithoutHost, type Installation } from './installation.ts'
import { endLabAfterAll, lab, type Lab } from './lab.ts'
import { startLoad, type Load } from './load.ts'
import { writeChart } from './small-chart.ts'
import { untilClean } from './until-clean.ts'
import { database, staticVolume } from './workload-manifests.ts'

interface Pod {
  readonly metadata: { readonly name: string; readonly uid: string }
  readonly status?: { readonly containerStatuses?: readonly { readonly restartCount: number }[] }
}

const volumes = ['adopted-0', 'adopted-1']

endLabAfterAll()

describe('applications that ran in a member before kcp', function () {
  this.timeout(240_000)
  const stack = new AsyncDisposableStack()
  let clusters: Lab
  let old: Cluster
  let installation: Installation
  let alice = ''
  let helm: Helm
  let chart = ''
  let load: Load | undefined

  before(async function () {
    this.timeout(300_000)
    await needsNodes(this)
    clusters = await lab()
    old = clusters.east
    installation = stack.use(await installWithoutHost(clusters))
    for (const member of [clusters.east, clusters.west]) await installation.join(member)
    await kubectl(installation.admin, ['wait', '--for=condition=Ready', 'memberclusters', '--all', '--timeout=60s'])
    await createLogicalCluster(installation, 'acme', 'alice')
    alice = await installation.tenant('acme', 'alice')
    helm = stack.use(await createHelm('shop'))
    chart = await writeChart()
    stack.defer(() => rm(chart, { recursive: true, force: true }))
    for (const name of volumes) await old.kubectl(['apply', '-f', '-'], staticVolume(name))
    for (const name of ['shop', 'blog']) await old.kubectl(['create', 'namespace', name])
    await helm.run(old.kubeconfig, 'install', 'web', chart, '--wait', '--timeout', '90s')
    await old.kubectl(['apply', '-n', 'shop', '-f', '-'], { input: database() })
    await old.kubectl(['apply', '-n', 'blog', '-f', '-'], { input: database({ withClaims: false }) })
    for (const name of ['shop', 'blog'])
      await old.kubectl(['rollout', 'status', 'statefulset/db', '-n', name, '--timeout=90s'])
  })
  after(async function () {
    this.timeout(120_000)
    await load?.stop().catch(() => undefined)
    const id = await idOf(installation, 'acme')
    await kubectl(installation.admin, ['delete', 'lc/acme', '--timeout=100s'])
    await untilClean(clusters.west, [id])
    await old.kubectl(['delete', 'namespace', 'shop', 'blog', '--timeout=60s'], { expectCode: 'any' })
    await old.kubectl(['delete', 'pv', '--ignore-not-found', '--wait=false', ...volumes])
    await stack.disposeAsync()
  })

  const adopt = (namespace: string, ...flags: string[]): Promise<CommandResult> =>
    runKcp(['adopt', namespace, '--from', old.name, '--into', 'acme', ...installation.flags, ...flags], {
      timeoutMs: 120_000,
    })
  const podsOf = async (result: Promise<CommandResult>): Promise<string[]> =>
    (JSON.parse((await result).stdout) as { items: Pod[] }).items
      .map(
        ({ metadata, status }) =>
          `${metadata.name} ${metadata.uid} ${(status?.containerStatuses ?? []).map((one) => one.restartCount).join()}`,
      )
      .sort()
  const inOld = (namespace: string): Promise<string[]> =>
    podsOf(old.kubectl(['get', 'pods', '-n', namespace, '-o', 'json']))
  const shown = (namespace: string): Promise<string[]> =>
    podsOf(kubectl(alice, ['get', 'pods', '-n', namespace, '-o', 'json']))
  const untilShown = (namespace: string, pods: readonly string[]): Promise<unknown> =>
    waitFor(async () => JSON.stringify(await shown(namespace)) === JSON.stringify(pods), {
      what: `the pods of ${namespace} in the logical cluster`,
      deadlineMs: 60_000,
    })

  it('are adopted under load, with volumes and a release of Helm: the same pods, no restart, no failed request', async () => {
    const before = await inOld('shop')
    expect(before).to.have.length(4)
    const { stdout: address } = await old.kubectl([
      'get',
      'svc',
      'web',
      '-n',
      'shop',
      '-o',
      'jsonpath={.spec.clusterIP}',
    ])
    load = await startLoad(old, `http://${address}/hostname`)
    const { stdout } = await adopt('shop', '--yes', '--member-kubeconfig', old.kubeconfig)
    expect(stdout).to.match(/Adopt +PersistentVolumeClaim\/data-db-0 .*volume keeps its workload/)
    await untilShown('shop', before)
    expect(await inOld('shop')).to.deep.equal(before)
    for (const name of ['deployment/web', 'statefulset/db'])
      await kubectl(alice, ['rollout', 'status', name, '-n', 'shop', '--timeout=60s'])
    const { stdout: said } = await kubectl(alice, ['exec', '-n', 'shop', 'db-0', '--', '/agnhost', 'help'])
    expect(said).to.contain('netexec')
    const claims = await kubectl(alice, ['get', 'pvc', '-n', 'shop', '-o', 'jsonpath={.items[*].status.phase}'])
    expect(claims.stdout).to.equal('Bound Bound')
    const { failed, sent, errors } = await load.stop()
    expect([failed, errors], `${sent} requests`).to.deep.equal([0, []])
  })

  it('are upgraded by helm in the logical cluster', async () => {
    const before = await inOld('shop')
    expect((await helm.run(alice, 'list')).stdout).to.match(/^web\s+shop\s+1\s/m)
    await helm.run(alice, 'upgrade', 'web', chart, '--set', 'replicas=3', '--wait', '--timeout', '90s')
    const now = await inOld('shop')
    expect(now).to.have.length(5)
    expect(now).to.include.members(before)
    await untilShown('shop', now)
  })

  it('get the usual template when their tenant changes it', async () => {
    await kubectl(alice, ['set', 'env', 'deployment/web', '-n', 'shop', 'COLOUR=blue'])
    await kubectl(alice, ['rollout', 'status', 'deployment/web', '-n', 'shop', '--timeout=90s'])
    const { stdout } = await old.kubectl(['get', 'deployment', 'web', '-n', 'shop', '-o', 'yaml'])
    expect(stdout).to.contain('kcp-api-access')
    const history = await kubectl(alice, ['rollout', 'history', 'deployment/web', '-n', 'shop'])
    expect(history.stdout.match(/^\d+ /gm)).to.have.length(2)
  })

  it('are given back as they were, and run on', async () => {
    const before = await inOld('blog')
    const spec = async (): Promise<string> =>
      (await old.kubectl(['get', 'sts,svc,cm,sa', '-n', 'blog', '-o', 'jsonpath={.items[*].spec}'])).stdout
    const specs = await spec()
    await adopt('blog', '--yes', '--member-kubeconfig', old.kubeconfig)
    await untilShown('blog', before)
    await adopt('blog', '--undo', '--yes')
    expect(await inOld('blog')).to.deep.equal(before)
    expect(await spec()).to.equal(specs)
    const { stdout } = await old.kubectl(['get', 'ns/blog', '-o', 'yaml'])
    const { stdout: all } = await old.kubectl([
      'get',
      'sts,svc,pods,controllerrevisions,cm,sa',
      '-n',
      'blog',
      '-o',
      'yaml',
    ])
    expect(`${stdout}${all}`).not.to.contain('kcp.dev/')
  })

  it('move to another member under load without a failed request', async () => {
    const { stdout: address } = await old.kubectl([
      'get',
      'svc',
      'web',
      '-n',
      'shop',
      '-o',
      'jsonpath={.spec.clusterIP}',
    ])
    load = await startLoad(old, `http://${address}/hostname`)
    await runKcp(
      [
        'move',
        'deployment/web',
        '-n',
        'shop',
        '-c',
        'acme',
        '--to',
        'west',
        '--wait',
        '--timeout',
        '120',
        ...installation.flags,
      ],
      {
        timeoutMs: 150_000,
      },
    )
    const { failed, sent, errors } = await load.stop()
    expect([failed, errors], `${sent} requests`).to.deep.equal([0, []])
  })
})
