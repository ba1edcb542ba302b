// A Deployment that is divided over three real members with pods: counts and `kubectl rollout status` are true at each
// step.
import { join } from 'node:path'
import { expect } from 'chai'
import {
  agnhostImage,
  kubectl,
  needsNodes,
  repositoryRoot,
  startCluster,
  waitFor,
  type Cluster,
  type CommandResult,
} from '#test/support/index.ts'
import { createLogicalCluster, idOf, installWithoutHost, type Installation } from '#test/e2e/installation.ts'
import { endLabAfterAll, lab } from '#test/e2e/lab.ts'
import { startLoad } from '#test/e2e/load.ts'
import { answeringPods, documents, namespace, type Manifest } from '#test/e2e/manifests.ts'

interface Pod {
  readonly metadata: { readonly deletionTimestamp?: string }
  readonly spec: { readonly containers: readonly { readonly image: string }[] }
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] }
}

const space = 'shop'
const badImage = 'nowhere.invalid/none:1'

endLabAfterAll()

describe('a Deployment that is divided over three members', function () {
  this.timeout(300_000)
  const stack = new AsyncDisposableStack()
  const members: Cluster[] = []
  let installation: Installation
  let alice = ''
  let below = ''
  const as = (args: readonly string[], options: object = {}): Promise<CommandResult> =>
    kubectl(alice, ['-n', space, ...args], options)

  before(async function () {
    await needsNodes(this)
    this.timeout(300_000)
    const [{ east, west }, north] = await Promise.all([lab(), startCluster({ name: 'north', nodes: 1 })])
    stack.defer(() => north.stop())
    members.push(east, west, north)
    installation = stack.use(await installWithoutHost({ east }))
    for (const member of members) await installation.join(member)
    await kubectl(installation.admin, ['wait', '--for=condition=Ready', 'memberclusters', '--all', '--timeout=60s'])
    await createLogicalCluster(installation, 'acme', 'alice')
    alice = await installation.tenant('acme', 'alice')
    below = `${await idOf(installation, 'acme')}-${space}`
    await kubectl(alice, ['apply', '-f', '-'], { input: namespace(space) })
    await kubectl(alice, ['apply', '-f', join(repositoryRoot, 'config/crd/kcp.dev_placements.yaml')])
    await kubectl(alice, ['wait', '--for=condition=Established', 'crd/placements.kcp.dev', '--timeout=30s'])
    await kubectl(alice, ['apply', '-f', '-'], { input: dividing })
  })
  after(async function () {
    this.timeout(120_000)
    await stack.disposeAsync()
  })

  /** Pods that are ready and do not end, in each member. */
  const readyIn = async (image?: string): Promise<number[]> =>
    await Promise.all(
      members.map(async (member) => {
        const { stdout } = await member.kubectl(['get', 'pods', '-n', below, '-l', 'app=web', '-o', 'json'])
        return (JSON.parse(stdout) as { items: Pod[] }).items.filter(
          ({ metadata, spec, status }) =>
            metadata.deletionTimestamp === undefined &&
            (image === undefined || spec.containers[0]?.image === image) &&
            status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') === true,
        ).length
      }),
    )
  const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0)
  /** Waits for `kubectl rollout status`, which must not be early, and for these counts. */
  const untilDivided = async (...counts: readonly number[]): Promise<void> => {
    await as(['rollout', 'status', 'deployment/web', '--timeout=120s'])
    expect(sum(await readyIn()), 'ready pods when the rollout is said to be complete').to.be.at.least(sum(counts))
    await waitFor(async () => expect(await readyIn()).to.deep.equal(counts), {
      what: `${counts.join(', ')} pods in east, west and north`,
      deadlineMs: 90_000,
      intervalMs: 500,
    })
    await waitFor(
      async () => {
        const { stdout } = await as(['get', 'deployment', 'web', '--no-headers'])
        expect(stdout).to.match(
          new RegExp(String.raw`^web\s+${sum(counts)}/${sum(counts)}\s+${sum(counts)}\s+${sum(counts)}\s`),
        )
        return true
      },
      { what: 'the counts of kubectl get', deadlineMs: 20_000, intervalMs: 500 },
    )
  }
  const taint = (taints: object | null): Promise<CommandResult> =>
    kubectl(installation.admin, [
      ...['patch', 'membercluster', 'west', '--type=merge'],
      ...['-p', JSON.stringify({ spec: { taints } })],
    ])

  it('keeps its counts while it is scaled, and while a member leaves and returns, and fails no request', async () => {
    await as(['apply', '-f', '-'], { input: web })
    await untilDivided(4, 4, 4)
    const [east] = members
    const { stdout } = await east!.kubectl(['get', 'service', 'web', '-n', below, '-o', 'jsonpath={.spec.clusterIP}'])
    const load = await startLoad(east!, `http://${stdout}/hostname`, { perSecond: 50 })
    await as(['scale', 'deployment/web', '--replicas=30'])
    await untilDivided(10, 10, 10)
    await as(['scale', 'deployment/web', '--replicas=6'])
    await untilDivided(2, 2, 2)
    await taint([{ key: 'leaving', effect: 'NoExecute' }])
    await waitFor(async () => expect(await readyIn()).to.deep.equal([3, 0, 3]), {
      what: 'west to be left',
      deadlineMs: 120_000,
      intervalMs: 500,
    })
    await untilDivided(3, 0, 3)
    await taint(null)
    await waitFor(async () => expect(await readyIn()).to.deep.equal([2, 2, 2]), {
      what: 'west to be used again',
      deadlineMs: 120_000,
      intervalMs: 500,
    })
    await untilDivided(2, 2, 2)
    const { sent, failed, errors } = await load.stop()
    console.log(`      ${sent} requests sent, ${failed} failed`, errors.slice(0, 3))
    expect(sent).to.be.greaterThan(1000)
    expect(failed, errors.join('\n')).to.equal(0)
  })

  it('stops in all members at an image that cannot be pulled, says so, and goes back', async () => {
    await as(['set', 'image', 'deployment/web', `main=${badImage}`])
    const { code, stderr } = await as(['rollout', 'status', 'deployment/web', '--timeout=120s'], { expectCode: 'any' })
    expect([code, stderr]).to.deep.equal([1, 'error: deployment "web" exceeded its progress deadline\n'])
    // A quarter of the pods of each member may be unavailable: of two, none.
    expect(await readyIn(agnhostImage)).to.deep.equal([2, 2, 2])
    expect(await readyIn(badImage)).to.deep.equal([0, 0, 0])
    const { stdout } = await as(['describe', 'deployment', 'web'])
    expect(stdout).to.contain('ProgressDeadlineExceeded')
    await as(['rollout', 'undo', 'deployment/web'])
    await untilDivided(2, 2, 2)
    expect(await readyIn(agnhostImage)).to.deep.equal([2, 2, 2])
  })
})

const dividing: Manifest = {
  apiVersion: 'kcp.dev/v1alpha1',
  kind: 'Placement',
  metadata: { name: 'divided' },
  spec: { replicas: { mode: 'Divide' }, move: { drainSeconds: 5 } },
}

const labels = { app: 'web' }

const web = documents([
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web' },
    spec: { selector: labels, ports: [{ port: 80, targetPort: 8080 }] },
  },
  {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web' },
    spec: {
      replicas: 12,
      progressDeadlineSeconds: 20,
      selector: { matchLabels: labels },
      template: answeringPods(labels),
    },
  },
])
