// The same objects in a simulated member and in a real control plane: the controllers and the scheduler must say the
// same words. The real cluster has a node without a kubelet, so what is compared is what happens before pods run.
import { expect } from 'chai'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { startSimulatedMember } from '#simulation/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import { kubectl, startCluster, waitFor } from '#test/support/index.ts'

const within = { deadlineMs: 30_000, intervalMs: 100 }
const cluster = 'compared'

interface Condition {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
}

describe('a simulated member beside a real control plane', function () {
  this.timeout(120_000)
  const stack = new AsyncDisposableStack()
  const kubeconfigs: { simulated: string; real: string } = { simulated: '', real: '' }
  const both = ['real', 'simulated'] as const

  const apply = async (...items: object[]): Promise<void> => {
    for (const which of both)
      await kubectl(kubeconfigs[which], ['apply', '-f', '-'], { input: { apiVersion: 'v1', kind: 'List', items } })
  }
  const read = async (which: (typeof both)[number], what: string): Promise<KubeObject> =>
    JSON.parse((await kubectl(kubeconfigs[which], ['get', ...what.split(' '), '-o', 'json'])).stdout) as KubeObject
  const conditionsOf = (object: KubeObject): Condition[] =>
    ((object['status'] ?? {}) as { conditions?: Condition[] }).conditions ?? []
  /** Waits in both clusters for a condition, and resolves with its words in each; hashes in names are left out. */
  const words = async (what: string, type: string): Promise<Record<(typeof both)[number], string>> => {
    const of = async (which: (typeof both)[number]): Promise<string> => {
      const { status, reason, message } = await waitFor(
        async () => conditionsOf(await read(which, what)).find((one) => one.type === type),
        { what: `${type} of ${what} in the ${which} cluster`, ...within },
      )
      return [type, status, reason, (message ?? '').replaceAll(/-[a-z0-9]{8,10}(-[a-z0-9]{5})?"/g, '-HASH"')].join(' ')
    }
    return { real: await of('real'), simulated: await of('simulated') }
  }
  const expectSame = async (what: string, type: string): Promise<void> => {
    const { real, simulated } = await words(what, type)
    expect(simulated, what).to.equal(real)
  }
  const pod = (name: string, spec: object) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { containers: [{ name: 'c', image: 'demo/web' }], ...spec },
  })
  const asking = (requests: object, limits = {}) => ({
    containers: [{ name: 'c', image: 'demo/web', resources: { requests, limits } }],
  })

  before(async function () {
    this.timeout(180_000)
    const dir = mkdtempSync(join(tmpdir(), 'kcp-simulated-'))
    stack.defer(() => rmSync(dir, { recursive: true, force: true }))
    const life = new AbortController()
    stack.defer(() => life.abort())
    const nodes = { count: 1, cpu: '4', memory: '8Gi', pods: 3 }
    const member = startSimulatedMember({ name: cluster, dir, nodes, log: silentLogger, signal: life.signal })
    const [real, simulated] = await Promise.all([
      startCluster({ name: cluster, controllerManager: true, scheduler: true }),
      member,
    ])
    stack.use(real)
    stack.use(simulated)
    kubeconfigs.real = real.kubeconfig
    kubeconfigs.simulated = join(dir, 'kubeconfig')
    writeFileSync(kubeconfigs.simulated, simulated.kubeconfig)
    // The pods of kube-system would be counted in one of the clusters alone.
    await kubectl(kubeconfigs.simulated, ['delete', 'deployment,daemonset', '--all', '-n', 'kube-system'])
    await waitFor(
      async () => (await kubectl(kubeconfigs.simulated, ['get', 'pods', '-A', '-o', 'name'])).stdout === '',
      { what: 'an empty member', ...within },
    )
    const node = await read('simulated', `node ${cluster}-node-1`)
    const { name, labels } = node.metadata
    const amounts = { cpu: '4', memory: '8Gi', pods: '3', 'ephemeral-storage': '100Gi' }
    const ready = {
      type: 'Ready',
      status: 'True',
      reason: 'KubeletReady',
      message: '',
      lastHeartbeatTime: new Date().toISOString(),
    }
    const status = { capacity: amounts, allocatable: amounts, conditions: [ready] }
    await kubectl(real.kubeconfig, ['create', '-f', '-'], {
      input: { apiVersion: 'v1', kind: 'Node', metadata: { name, labels }, spec: {} },
    })
    await kubectl(real.kubeconfig, [
      'patch',
      'node',
      name ?? '',
      '--subresource=status',
      '--type=merge',
      '-p',
      JSON.stringify({ status }),
    ])
    await waitFor(
      async () => ((await read('real', `node ${name ?? ''}`))['spec'] as { taints?: unknown }).taints === undefined,
      { what: 'the node without taints', ...within },
    )
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  for (const [title, name, spec] of [
    ['asks for more CPU than a node has', 'huge', asking({ cpu: '5' })],
    [
      'asks for more of everything',
      'vast',
      asking({ cpu: '5', memory: '9Gi', 'example.com/gpu': '1' }, { 'example.com/gpu': '1' }),
    ],
    ['asks for another node', 'elsewhere', { nodeSelector: { disk: 'ssd' } }],
    [
      'asks for a claim that does not exist',
      'unclaimed',
      { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'none' } }] },
    ],
    [
      'must be where no other pod is',
      'lonely',
      {
        affinity: {
          podAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: [
              { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { app: 'nobody' } } },
            ],
          },
        },
      },
    ],
  ] as const)
    it(`says why a pod that ${title} is not scheduled`, async () => {
      await apply(pod(name, spec))
      await expectSame(`pod ${name}`, 'PodScheduled')
    })

  it('says why pods do not fit any more, and that a node is cordoned or tainted', async () => {
    await apply(pod('first', asking({ cpu: '3' })))
    for (const which of both)
      await waitFor(
        async () =>
          (await read(which, 'pod first'))['spec'] !== undefined &&
          ((await read(which, 'pod first'))['spec'] as { nodeName?: string }).nodeName,
        { what: 'the first pod', ...within },
      )
    await apply(pod('second', asking({ cpu: '2' })))
    await expectSame('pod second', 'PodScheduled')
    for (const which of both) await kubectl(kubeconfigs[which], ['cordon', `${cluster}-node-1`])
    await apply(pod('third', {}))
    await expectSame('pod third', 'PodScheduled')
    for (const which of both) {
      await kubectl(kubeconfigs[which], ['uncordon', `${cluster}-node-1`])
      await kubectl(kubeconfigs[which], ['delete', 'pod', '--all', '--grace-period=0', '--force'])
      await kubectl(kubeconfigs[which], ['taint', 'node', `${cluster}-node-1`, 'dedicated=db:NoSchedule'])
    }
    await apply(pod('fourth', {}))
    await expectSame('pod fourth', 'PodScheduled')
  })

  it('shows a Deployment that waits, one that is refused, and one that is paused in the same words', async () => {
    const deployment = (name: string, namespace: string, more: object = {}) => ({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name, namespace },
      spec: {
        replicas: 2,
        selector: { matchLabels: { app: name } },
        template: {
          metadata: { labels: { app: name } },
          spec: { nodeSelector: { disk: 'ssd' }, ...asking({ cpu: '1' }) },
        },
        ...more,
      },
    })
    const quota = {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'none', namespace: 'full' },
      spec: { hard: { pods: '0' } },
    }
    await apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'full' } }, quota)
    for (const which of both)
      await waitFor(
        async () => JSON.stringify((await read(which, 'quota none -n full'))['status'] ?? {}).includes('"used"'),
        { what: 'the quota', ...within },
      )
    await apply(
      deployment('waits', 'default'),
      deployment('refused', 'full'),
      deployment('paused', 'default', { paused: true }),
    )
    await expectSame('deployment waits', 'Available')
    await expectSame('deployment waits', 'Progressing')
    await expectSame('deployment paused', 'Progressing')
    const { real, simulated } = await words('deployment refused -n full', 'ReplicaFailure')
    const withoutEnd = (text: string): string => text.replaceAll(/refused-[a-z0-9-]+/g, 'refused-HASH')
    expect(withoutEnd(simulated)).to.equal(withoutEnd(real))
    const statusOf = async (which: (typeof both)[number], name: string): Promise<object> => {
      const { conditions: _, ...status } = (await read(which, `deployment ${name}`))['status'] as Record<
        string,
        unknown
      >
      return status
    }
    for (const name of ['waits', 'paused'])
      expect(await statusOf('simulated', name), name).to.deep.equal(await statusOf('real', name))
  })
})
