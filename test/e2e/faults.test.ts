// Failures that must lose nothing: our process killed at the worst moments of a move, a member that is away, deletions
// meanwhile.
import { expect } from 'chai'
import { itInLongRun, kubectl, needsNodes, waitFor, type Cluster, type CommandResult } from '#test/support/index.ts'
import { createLogicalCluster, idOf, installWithoutHost, type Installation } from './installation.ts'
import { endLabAfterAll, lab, type Lab } from './lab.ts'
import { startLoad } from './load.ts'
import { namespace, toolbox, webApplication } from './manifests.ts'
import { untilClean } from './until-clean.ts'

interface Metadata {
  readonly name: string
  readonly namespace?: string
  readonly uid: string
  readonly annotations?: Readonly<Record<string, string>>
}
interface List {
  readonly items: readonly {
    readonly kind: string
    readonly metadata: Metadata
    readonly spec?: { clusterIP?: string }
  }[]
}

endLabAfterAll()

describe('kcp under failures', function () {
  this.timeout(120_000)
  const stack = new AsyncDisposableStack()
  let clusters: Lab
  let installation: Installation
  let alice = ''

  before(async function () {
    this.timeout(240_000)
    await needsNodes(this)
    clusters = await lab()
    installation = stack.use(await installWithoutHost(clusters))
    await installation.join(clusters.east)
    await installation.join(clusters.west)
    const { admin } = installation
    await kubectl(admin, ['wait', '--for=condition=Ready', 'memberclusters.kcp.dev', '--all', '--timeout=60s'])
    await createLogicalCluster(installation, 'acme', 'alice')
    alice = await installation.tenant('acme', 'alice')
    await asAlice(['apply', '-f', '-'], { input: namespace('shop', 'east') })
    await asAlice(['apply', '-f', '-'], { input: webApplication('shop') })
    // Pinned to east: it keeps namespace and Services there, where the load is generated.
    const pinned = {
      ...toolbox('shop'),
      metadata: { name: 'toolbox', namespace: 'shop', annotations: { 'kcp.dev/clusters': 'east' } },
    }
    await asAlice(['apply', '-f', '-'], { input: pinned })
    for (const name of ['web', 'toolbox'])
      await asAlice(['rollout', 'status', `deployment/${name}`, '-n', 'shop', '--timeout=90s'])
    await untilPlaced({ east: 'Serving' })
  })
  after(async function () {
    this.timeout(180_000)
    if (alice !== '') await leaveNothing()
    await stack.disposeAsync()
  })

  /** The next file has the same members. */
  const leaveNothing = async (): Promise<void> => {
    if (!api(clusters.east).running) await api(clusters.east).start()
    const { admin } = installation
    const { stdout: id } = await kubectl(admin, ['get', 'lc/acme', '--ignore-not-found', '-o', 'jsonpath={.status.id}'])
    if (id === '') return
    await kubectl(admin, ['delete', 'lc/acme', '--timeout=120s'])
    for (const member of [clusters.east, clusters.west]) await untilClean(member, [id])
  }

  const asAlice = (args: string[], options: object = {}): Promise<CommandResult> => kubectl(alice, args, options)
  const jsonOf = async (args: string[]): Promise<List> =>
    JSON.parse((await asAlice([...args, '-o', 'json'])).stdout) as List
  const placed = async (): Promise<Record<string, string>> => {
    const { stdout } = await asAlice(['get', 'deployment/web', '-n', 'shop', '-o', 'json'])
    const { metadata } = JSON.parse(stdout) as { metadata: Metadata }
    const decision = JSON.parse(metadata.annotations?.['kcp.dev/placed-on'] ?? '{}') as Record<
      string,
      { state: string }
    >
    return Object.fromEntries(Object.entries(decision).map(([member, { state }]) => [member, state]))
  }
  const untilPlaced = (expected: Record<string, string>): Promise<unknown> =>
    waitFor(async () => JSON.stringify(await placed()) === JSON.stringify(expected), {
      what: `it to be ${JSON.stringify(expected)}`,
      deadlineMs: 90_000,
    })
  /** Alice's objects, by name and uid. */
  const inventory = async (): Promise<string[]> =>
    (await jsonOf(['get', 'deployments,services,configmaps,namespaces', '--all-namespaces'])).items
      .map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name} ${metadata.uid}`)
      .sort()
  const reachable = async (member: string): Promise<string> =>
    (
      await kubectl(installation.admin, [
        'get',
        `memberclusters.kcp.dev/${member}`,
        '-o',
        'jsonpath={.status.conditions[?(@.type=="Reachable")].status}',
      ])
    ).stdout
  const api = ({ name, processes }: Cluster) => {
    const process = processes.get('kube-apiserver')
    if (process === undefined) throw new Error(`${name} has no kube-apiserver`)
    return process
  }

  /**
   * States of the new copy in the order in which it takes them. A state may pass before it is seen: then the next one
   * counts.
   */
  const statesIn = ['Assumed', 'Syncing', 'Applied', 'Available', 'Serving']
  const statesOut = ['Draining', 'Terminating']
  /** Moves the application to and fro under load, and kills all our processes when a move is in each of the states. */
  const killAt = async (states: readonly string[]): Promise<void> => {
    const before = await inventory()
    const { stdout } = await clusters.east.kubectl(['get', 'services', '--all-namespaces', '-o', 'json'])
    const service = (JSON.parse(stdout) as List).items.find(
      ({ metadata }) => metadata.name === 'web' && metadata.namespace?.endsWith('-shop'),
    )
    const load = await startLoad(clusters.east, `http://${service?.spec?.clusterIP ?? ''}/hostname`, { perSecond: 50 })
    for (const state of states) {
      const [from, to] = (await placed())['east'] === undefined ? ['west', 'east'] : ['east', 'west']
      await asAlice(['annotate', 'deployment/web', '-n', 'shop', `kcp.dev/clusters=${to}`, '--overwrite'])
      const isReached = (seen: Record<string, string>): boolean => {
        if (statesOut.includes(state)) return statesOut.indexOf(seen[from] ?? 'Terminating') >= statesOut.indexOf(state)
        return statesIn.indexOf(seen[to] ?? '') >= statesIn.indexOf(state)
      }
      await waitFor(async () => isReached(await placed()), { what: state, deadlineMs: 60_000, intervalMs: 20 })
      for (const process of installation.processes) {
        await process.kill()
        await process.start()
      }
      await untilPlaced({ [to]: 'Serving' })
      const pods = await jsonOf(['get', 'pods', '-n', 'shop', '-l', 'app=web'])
      expect(pods.items.filter(({ metadata }) => metadata.annotations?.['kcp.dev/member'] === from)).to.have.length(0)
    }
    const { sent, failed, errors } = await load.stop()
    console.log(`      ${states.length} moves and crashes: ${sent} requests sent, ${failed} failed`, errors.slice(0, 3))
    expect(sent).to.be.greaterThan(200 * states.length)
    expect(failed, errors.join('\n')).to.equal(0)
    expect(await inventory()).to.deep.equal(before)
  }

  // Two and a half minutes: eight moves. test/integration/syncer/move-kills.test.ts kills single processes.
  itInLongRun('a process killed with -9 in every state of a move loses no object and no request', function () {
    this.timeout(900_000)
    return killAt(['Syncing', 'Assumed', 'Applied', 'Available', 'Serving', 'Draining', 'Terminating', 'Draining'])
  })

  it('a move reversed before it is finished leaves the application where it serves', async () => {
    for (const member of ['west', 'east', 'west', 'east'])
      await asAlice(['annotate', 'deployment/web', '-n', 'shop', `kcp.dev/clusters=${member}`, '--overwrite'])
    await untilPlaced({ east: 'Serving' })
    await asAlice(['rollout', 'status', 'deployment/web', '-n', 'shop', '--timeout=30s'])
  })

  it('tenants read and write as before while a member is away, its status says so, and all changes arrive when it is back', async () => {
    const before = await inventory()
    await api(clusters.east).kill()
    await asAlice(['scale', 'deployment/web', '-n', 'shop', '--replicas=3'])
    await asAlice(['label', 'deployment/web', '-n', 'shop', 'edited=meanwhile'])
    await asAlice(['patch', 'configmap/web', '-n', 'shop', '-p', '{"data":{"greeting":"changed"}}'])
    await waitFor(async () => (await reachable('east')) === 'False', { what: 'it to be told', deadlineMs: 60_000 })
    expect(await inventory()).to.deep.equal(before)
    expect((await jsonOf(['get', 'pods', '-n', 'shop', '-l', 'app=web'])).items).to.have.length(2)
    const pod = (await jsonOf(['get', 'pods', '-n', 'shop', '-l', 'app=web'])).items[0]?.metadata.name ?? ''
    const refused = await asAlice(['exec', '-n', 'shop', pod, '--', '/agnhost', 'help'], { expectCode: 'any' })
    expect(refused.stderr).to.contain('member cluster "east" can\'t be reached now')
    await api(clusters.east).start()
    await waitFor(async () => (await reachable('east')) === 'True', { what: 'it to be back', deadlineMs: 40_000 })
    await asAlice(['rollout', 'status', 'deployment/web', '-n', 'shop', '--timeout=90s'])
    const copies = await clusters.east.kubectl([
      'get',
      'deployments,configmaps',
      '-A',
      '-l',
      'kcp.dev/managed',
      '-o',
      'json',
    ])
    expect(copies.stdout).to.contain('"edited": "meanwhile"').and.contain('"greeting": "changed"')
    expect(await inventory()).to.deep.equal(before)
  })

  itInLongRun(
    'an application in a member that is away moves on request, and the member is cleaned up when it is back',
    async function () {
      this.timeout(400_000)
      const id = await idOf(installation, 'acme')
      await api(clusters.east).kill()
      await waitFor(async () => (await reachable('east')) === 'False', { what: 'it to be told', deadlineMs: 60_000 })
      await asAlice(['annotate', 'deployment/web', '-n', 'shop', 'kcp.dev/clusters=west', '--overwrite'])
      await waitFor(async () => (await placed())['west'] === 'Serving', {
        what: 'it to serve in west',
        deadlineMs: 60_000,
      })
      await kubectl(installation.admin, [
        'delete',
        'memberclusters.kcp.dev/east',
        'logicalclusters.kcp.dev/acme',
        '--wait=false',
      ])
      const left = await waitFor(
        async () =>
          /.*held by.*/.exec((await kubectl(installation.admin, ['get', 'lc/acme', '-o', 'yaml'])).stdout)?.[0],
        { what: 'what is left to be told', deadlineMs: 20_000 },
      )
      expect(left).to.contain('syncer.kcp.dev/east')
      await api(clusters.east).start()
      for (const name of ['logicalclusters.kcp.dev/acme', 'memberclusters.kcp.dev/east'])
        await waitFor(
          async () => {
            const { stdout } = await kubectl(installation.admin, ['get', name, '--ignore-not-found', '-o', 'yaml'])
            if (stdout !== '') throw new Error(stdout)
            return true
          },
          { what: `${name} to be gone`, deadlineMs: 180_000, intervalMs: 500 },
        )
      for (const member of [clusters.east, clusters.west]) await untilClean(member, [id])
    },
  )
})
