// Members whose pod networks are not joined: pods reach Services of other members through gateways, with the image of
// kcp itself.
import { expect } from 'chai'
import { kubectl, needsNodes, waitFor, type Cluster, type CommandResult } from '#test/support/index.ts'
import { deleteAll } from './delete-all.ts'
import { createLogicalCluster, idOf, installWithoutHost, type Installation } from './installation.ts'
import { importKcp, kcpImage } from './kcp-image.ts'
import { endLabAfterAll, lab, type Lab } from './lab.ts'
import { startLoad } from './load.ts'
import { namespace, quickMoves, toolbox, webApplication } from './manifests.ts'
import { unjoinPods } from './unjoined-networks.ts'

interface Objects {
  readonly items: readonly {
    readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> }
    readonly spec?: { readonly clusterIP?: string }
    readonly status?: { readonly podIP?: string }
    readonly ports?: readonly { readonly port: number }[] | null
    readonly endpoints?: readonly { readonly addresses: readonly string[] }[] | null
  }[]
}

endLabAfterAll()

describe('members whose pod networks are not joined', function () {
  this.timeout(120_000)
  const stack = new AsyncDisposableStack()
  let clusters: Lab
  let installation: Installation
  let [alice, bob, id] = ['', '', '']

  before(async function () {
    this.timeout(300_000)
    await needsNodes(this)
    clusters = await lab()
    const { east, west } = clusters
    for (const member of [east, west]) await importKcp(member)
    await unjoinPods([east, west], stack)
    installation = stack.use(await installWithoutHost(clusters, ['--gateway-image', kcpImage]))
    for (const member of [east, west]) await installation.join(member, 'Gateway')
    for (const [cluster, owner] of [
      ['acme', 'alice'],
      ['globex', 'bob'],
    ] as const)
      await createLogicalCluster(installation, cluster, owner)
    id = await idOf(installation, 'acme')
    alice = await installation.tenant('acme', 'alice')
    bob = await installation.tenant('globex', 'bob')
    const box = toolbox('shop')
    const pinned = {
      ...box,
      metadata: { name: 'toolbox', namespace: 'shop', annotations: { 'kcp.dev/clusters': 'east' } },
    }
    for (const tenant of [alice, bob]) {
      await kubectl(tenant, ['apply', '-f', '-'], { input: namespace('shop', 'west') })
      await kubectl(tenant, ['apply', '-f', '-'], { input: pinned })
    }
    await kubectl(alice, ['apply', '-f', '-'], { input: quickMoves })
    await asAlice('apply', '-f', '-')(webApplication('shop'))
    for (const tenant of [alice, bob])
      await kubectl(tenant, ['rollout', 'status', 'deployment/toolbox', '-n', 'shop', '--timeout=90s'])
    await asAlice('rollout', 'status', 'deployment/web', '-n', 'shop', '--timeout=90s')()
  })
  after(async function () {
    this.timeout(120_000)
    await using _ = stack
    if (alice !== '') await deleteAll(installation.admin)
  })

  const asAlice =
    (...args: string[]) =>
    (input?: string): Promise<CommandResult> =>
      kubectl(alice, args, input === undefined ? {} : { input })
  const below = async (member: Cluster, what: string, ...flags: string[]): Promise<Objects['items']> => {
    const { stdout } = await member.kubectl(['get', what, '-n', `${id}-shop`, '-o', 'json', ...flags])
    return (JSON.parse(stdout) as Objects).items
  }
  /** Whether a pod of the tenant in east gets an answer there. */
  const canAsk = async (tenant: string, address: string): Promise<boolean> => {
    const command = ['/kubectl', `--server=http://${address}`, '--request-timeout=3s', 'get', '--raw', '/hostname']
    const args = ['exec', '-n', 'shop', 'deployment/toolbox', '-c', 'tool', '--', ...command]
    const { code, stdout } = await kubectl(tenant, args, { expectCode: 'any' })
    return code === 0 && stdout.startsWith('web-')
  }
  const move = async (to: string): Promise<void> => {
    await asAlice('annotate', 'deployment/web', '-n', 'shop', `kcp.dev/clusters=${to}`, '--overwrite')()
    await waitFor(
      async () => {
        const { stdout } = await asAlice('get', 'deployment/web', '-n', 'shop', '-o', 'json')()
        const { metadata } = JSON.parse(stdout) as Objects['items'][number]
        const placed = JSON.parse(metadata.annotations?.['kcp.dev/placed-on'] ?? '{}') as Record<
          string,
          { state: string }
        >
        return Object.keys(placed).join() === to && placed[to]?.state === 'Serving'
      },
      { what: `the application to be in ${to} alone`, deadlineMs: 90_000 },
    )
  }

  afterEach(async function () {
    if (this.currentTest?.state !== 'failed') return
    for (const member of [clusters.east, clusters.west])
      for (const args of [
        ['get', 'pods', '--all-namespaces', '-o', 'wide'],
        ['get', 'pods', '-n', 'kcp-system', '-o', 'jsonpath={.items[*].status.containerStatuses[*].lastState}'],
        ['logs', '-n', 'kcp-system', '-l', 'app.kubernetes.io/name=kcp-gateway', '--prefix', '--tail=40'],
        ['logs', '-n', 'kcp-system', '-l', 'app.kubernetes.io/name=kcp-gateway', '--prefix', '--tail=40', '--previous'],
      ])
        console.log(`${member.name}: ${args.join(' ')}\n${(await member.kubectl(args, { expectCode: 'any' })).stdout}`)
  })

  it('have gateways that are ready', async () => {
    const args = ['wait', '--for=condition=GatewayReady', 'memberclusters.kcp.dev', '--all', '--timeout=90s']
    await kubectl(installation.admin, args)
  })

  it('reach a Service whose pods run in the other one, though not these pods', async () => {
    await waitFor(() => canAsk(alice, 'web:80'), { what: 'the Service', deadlineMs: 30_000 })
    const [pod] = await below(clusters.west, 'pods', '-l', 'app=web')
    expect(await canAsk(alice, `${pod?.status?.podIP ?? ''}:8080`)).to.equal(false)
  })

  it('do not let pods of another tenant use the way', async () => {
    const [slice] = (await below(clusters.east, 'endpointslices')).filter(
      ({ metadata, endpoints }) =>
        metadata.annotations?.['kcp.dev/gateway-target'] !== undefined && (endpoints ?? []).length > 0,
    )
    const address = `${slice?.endpoints?.[0]?.addresses[0] ?? ''}:${slice?.ports?.[0]?.port ?? 0}`
    expect(await canAsk(alice, address), address).to.equal(true)
    expect(await canAsk(bob, address), address).to.equal(false)
  })

  it('move an application from one to the other and back without a failed request', async () => {
    const [service] = (await below(clusters.east, 'services')).filter(({ metadata }) => metadata.name === 'web')
    const url = `http://${service?.spec?.clusterIP ?? ''}/hostname`
    const load = await startLoad(clusters.east, url, { perSecond: 50 })
    const kept = await startLoad(clusters.east, url, { perSecond: 20, keepsConnections: true })
    await move('east')
    await move('west')
    const results = [await load.stop(), await kept.stop()]
    for (const { sent, failed, errors, answers } of results) {
      console.log(`      2 moves: ${sent} requests sent, ${failed} failed`, errors.slice(0, 3))
      expect(failed, errors.join('\n')).to.equal(0)
      expect(Object.keys(answers).length, 'pods that answered').to.be.greaterThan(1)
    }
  })
})
