// Moves of a Deployment that is reached from outside, through an Ingress that an unmodified Ingress controller
// (Skipper, one process per member) serves: no request may fail. The controllers write their addresses into the
// Ingresses of their members. The test plays what lies outside of Kubernetes: the load balancer that gives a controller
// its address, and the DNS that follows the status upstream. KCP_TEST_MOVES (default 20): number of moves.
import { expect } from 'chai'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import {
  ensurePrograms,
  kubectl,
  needsNodes,
  repositoryRoot,
  runCommand,
  startProcess,
  systemProgram,
  waitFor,
  type Cluster,
  type CommandResult,
} from '#test/support/index.ts'
import { createLogicalCluster, installWithoutHost, type Installation } from '#test/e2e/installation.ts'
import { endLabAfterAll, lab, type Lab } from '#test/e2e/lab.ts'
import { startLoad, type LoadResult } from '#test/e2e/load.ts'
import { answeringPods, documents, namespace, type Manifest } from '#test/e2e/manifests.ts'

const space = 'site'
const name = 'web'
const host = 'web.example'
const moves = Number(process.env['KCP_TEST_MOVES'] ?? 20)
/**
 * Clients use an address as long as its DNS record lives (see load-generator.ts), and then over connections that they
 * keep.
 */
const recordSeconds = 5
const connectionSeconds = 5
const times = { drainSeconds: 5, forwardSeconds: 12 }
/** How long the new pods have served when the controller of their member gets its address. */
const lateSeconds = 10
/** Of the proxy to the member's API, for Skipper, in the network of the node. */
const apiPort = 8001
/** The Service in each member that has the address of the controller. */
const entry = { namespace: 'ingress', name: 'skipper' }

interface IngressStatus {
  readonly status?: { readonly loadBalancer?: { readonly ingress?: readonly { readonly ip?: string }[] } }
}
const addressesIn = ({ status }: IngressStatus): string[] =>
  (status?.loadBalancer?.ingress ?? []).flatMap(({ ip }) => (ip === undefined ? [] : [ip]))

endLabAfterAll()

describe('moves of what is reached through an Ingress', function () {
  this.timeout(3_600_000)
  const stack = new AsyncDisposableStack()
  const life = new AbortController()
  const background: Promise<void>[] = []
  let clusters: Lab
  let installation: Installation
  let alice = ''
  let zone = ''
  const as = (...args: string[]): Promise<CommandResult> => kubectl(alice, ['-n', space, ...args])

  before(async function () {
    await needsNodes(this)
    this.timeout(1_200_000) // the first build of Skipper takes minutes
    await ensurePrograms(['skipper'])
    clusters = await lab()
    here = clusters.east
    installation = stack.use(await installWithoutHost(clusters))
    for (const member of [clusters.east, clusters.west]) {
      await installation.join(member)
      await startIngressController(member, stack)
    }
    await kubectl(installation.admin, ['wait', '--for=condition=Ready', 'memberclusters', '--all', '--timeout=60s'])
    await createLogicalCluster(installation, 'acme', 'alice')
    alice = await installation.tenant('acme', 'alice')
    const dir = await mkdtemp(join(tmpdir(), 'kcp-ingress-'))
    zone = join(dir, 'zone.json')
    stack.defer(() => rm(dir, { recursive: true, force: true }))
    stack.defer(async () => {
      life.abort()
      await Promise.all(background)
    })
    background.push(repeatedly(followStatus, life.signal))
    await kubectl(alice, ['apply', '-f', join(repositoryRoot, 'config/crd/kcp.dev_placements.yaml')])
    await kubectl(alice, ['wait', '--for=condition=Established', 'crd/placements.kcp.dev', '--timeout=30s'])
    await kubectl(alice, ['apply', '-f', '-'], { input: namespace(space, 'east') })
    await kubectl(alice, ['apply', '-f', '-'], { input: documents(application) })
    await as('rollout', 'status', `deployment/${name}`, '--timeout=120s')
    await waitFor(isServed, { what: 'an answer over the Ingress', deadlineMs: 60_000, intervalMs: 500 })
  })
  after(async function () {
    this.timeout(120_000)
    await stack.disposeAsync()
  })

  const upstreamIngress = async (): Promise<IngressStatus> =>
    JSON.parse((await as('get', 'ingress', name, '-o', 'json')).stdout) as IngressStatus

  const isServed = async (): Promise<boolean> => {
    const [address] = addressesIn(await upstreamIngress())
    if (address === undefined) return false
    const request = ['-fsS', '-m', '2', '-H', `Host: ${host}`, `http://${address}/hostname`]
    const { stdout } = await runCommand(systemProgram('curl'), request)
    return stdout.startsWith(name)
  }

  /** As the DNS controller of a site does. */
  const followStatus = async (): Promise<void> => {
    const addresses = addressesIn(await upstreamIngress())
    if (addresses.length === 0) return
    // Not written in place: the client may read it meanwhile.
    await writeFile(`${zone}.next`, JSON.stringify(addresses))
    await rename(`${zone}.next`, zone)
  }

  const states = async (): Promise<string> => {
    const path = String.raw`jsonpath={.metadata.annotations.kcp\.dev/placed-on}`
    const { stdout } = await as('get', 'deployment', name, '-o', path)
    const copies = Object.entries(JSON.parse(stdout || '{}') as Record<string, { state: string }>)
    return copies.map(([member, { state }]) => `${member} ${state}`).join()
  }

  /** Where the Deployment is. */
  let here: Cluster
  const moveOn = async (): Promise<void> => {
    const { east, west } = clusters
    const [from, to] = here === east ? [east, west] : [west, east]
    await as('annotate', 'deployment', name, `kcp.dev/clusters=${to.name}`, '--overwrite')
    await waitFor(async () => (await states()) === `${to.name} Serving` || undefined, {
      what: `${name} to serve in ${to.name} alone`,
      deadlineMs: 180_000,
      intervalMs: 1000,
    })
    here = to
    expect(addressesIn(await upstreamIngress())).to.deep.equal([addressOf(to)])
    await waitFor(async () => (await from.kubectl(['get', 'ingress', '-A', '-o', 'name'])).stdout === '', {
      what: `the Ingress to leave ${from.name}`,
      deadlineMs: 30_000,
      intervalMs: 500,
    })
  }
  /** Resolves with what clients did not get while the task ran. */
  const failuresDuring = async (task: () => Promise<void>): Promise<string[]> => {
    const url = `http://${host}/hostname`
    const fresh = await startLoad(clusters.east, url, { perSecond: 100, zone })
    const kept = await startLoad(clusters.west, url, { perSecond: 100, keepsConnections: true, zone })
    const failures: string[] = []
    try {
      await task()
    } finally {
      for (const [title, load] of Object.entries({ 'new connections': fresh, kept })) {
        const result = await load.stop()
        failures.push(...result.errors)
        console.log(`      ${title}: ${summary(result)}`, result.errors)
      }
    }
    return failures
  }

  /** The controller of the member that comes next gets its address only when the new pods have served for some time. */
  const moveOnLate = async (): Promise<void> => {
    const to = here === clusters.east ? clusters.west : clusters.east
    await giveAddress(to, [])
    const give = async (): Promise<void> => {
      await waitFor(async () => (await states()).includes(`${to.name} Serving`) || undefined, {
        what: `${name} to serve in ${to.name}, too`,
        deadlineMs: 120_000,
        intervalMs: 500,
      })
      await setTimeout(lateSeconds * 1000)
      await giveAddress(to, [addressOf(to)])
    }
    await Promise.all([moveOn(), give()])
  }

  it('fail no request, also where the new member gets an address late', async () => {
    const started = performance.now()
    let done = 0
    const failures = await failuresDuring(async () => {
      try {
        for (; done < moves; done++) await moveOn()
      } finally {
        console.log(
          `      ${done} moves in ${Math.round((performance.now() - started) / 1000)} s, and one with a late address`,
        )
      }
      await moveOnLate()
      // Until no client uses the old address any more.
      await setTimeout((recordSeconds + connectionSeconds + 2) * 1000)
    })
    expect(failures).to.deep.equal([])
  })
})

/** The load balancer of the member's cloud has given the controller these addresses. */
async function giveAddress(member: Cluster, addresses: readonly string[]): Promise<void> {
  // ipMode: kube-proxy does not answer at this address itself.
  const status = { loadBalancer: { ingress: addresses.map((ip) => ({ ip, ipMode: 'Proxy' })) } }
  const patch = ['--subresource=status', '--type=merge', '-p', JSON.stringify({ status })]
  await member.kubectl(['patch', 'service', entry.name, '-n', entry.namespace, ...patch])
}

function summary({ sent, failed, repeated }: LoadResult): string {
  return `${sent} sent, ${failed} failed, ${repeated} repeated`
}

function addressOf({ node, name: member }: Cluster): string {
  if (node === undefined) throw new Error(`${member} has no node`)
  return node.address
}

/** Skipper on port 80 of the node, with the member's API as its source. */
async function startIngressController(member: Cluster, stack: AsyncDisposableStack): Promise<void> {
  const { skipper, kubectl: program } = await ensurePrograms(['skipper', 'kubectl'])
  await member.kubectl(['create', 'namespace', entry.namespace])
  await member.kubectl(['apply', '-f', '-'], {
    input: {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: entry,
      spec: { type: 'LoadBalancer', ports: [{ port: 80 }] },
    },
  })
  await giveAddress(member, [addressOf(member)])
  const [enter = '', ...inside] = member.node?.enter ?? []
  const start = async (
    title: string,
    command: string,
    args: readonly string[],
    ready = (): Promise<boolean> => Promise.resolve(true),
  ): Promise<void> => {
    const options = { name: `${title}-${member.name}`, command: enter, args: [...inside, command, ...args], ready }
    const process = await startProcess(options)
    stack.defer(async () => {
      await process.stop()
    })
  }
  await start('api-proxy', program, ['proxy', '--kubeconfig', member.kubeconfig, '--port', String(apiPort)])
  const args = [
    '-kubernetes',
    `-kubernetes-url=http://127.0.0.1:${apiPort}`,
    `-kubernetes-status-from-service=${entry.namespace}/${entry.name}`,
    '-kubernetes-https-redirect=false',
    '-enable-kubernetes-endpointslices',
    `-keepalive-server=${connectionSeconds}s`,
    '-access-log-disabled',
    '-support-listener=',
    `-address=${addressOf(member)}:80`,
  ]
  await start('skipper', skipper, args, async () => (await fetch(`http://${addressOf(member)}/kube-system/healthz`)).ok)
}

/** Runs the task again and again, half a second after it has ended; what fails is tried again. */
async function repeatedly(task: () => Promise<void>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await task().catch(() => undefined)
    await setTimeout(500)
  }
}

const labels = { app: name }
const application: readonly Manifest[] = [
  {
    apiVersion: 'kcp.dev/v1alpha1',
    kind: 'Placement',
    metadata: { name: 'moves' },
    spec: { move: times },
  },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: space },
    spec: { selector: labels, ports: [{ port: 80, targetPort: 8080 }] },
  },
  {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'Ingress',
    metadata: { name, namespace: space },
    spec: {
      rules: [
        {
          host,
          http: { paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name, port: { number: 80 } } } }] },
        },
      ],
    },
  },
  {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: space },
    spec: {
      replicas: 3,
      selector: { matchLabels: labels },
      template: answeringPods(labels),
    },
  },
]
