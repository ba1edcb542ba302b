import { expect } from 'chai'
import { clusterIdOf, type KubeObject } from '#apimachinery/meta/index.ts'
import { memberControllers } from '#cli/roles/member-controllers.ts'
import { httpTransport, loadKubeconfig, type KubeClient } from '#client/index.ts'
import { kcpCrds } from '#crds/index.ts'
import { ensureCrds, startOperator } from '#operator/index.ts'
import { joinMember } from '#syncer/index.ts'
import { createLogger } from '#telemetry/index.ts'
import { createMembers, type Members } from '#virtualapi/outbound/members/index.ts'
import { createPki, createPkiMaterial } from '#virtualapi/index.ts'
import {
  agnhostImage,
  needsNodes,
  startCluster,
  waitFor,
  type Cluster,
  type ClusterOptions,
} from '#test/support/index.ts'
import { asWildcard, clientOf } from './ordinary-upstream.ts'

const signal = new AbortController().signal
const deployments = { group: 'apps', version: 'v1', resource: 'deployments' }
const services = { group: '', version: 'v1', resource: 'services' }
const namespaces = { group: '', version: 'v1', resource: 'namespaces' }
const logicalClusters = { group: 'kcp.dev', version: 'v1alpha1', resource: 'logicalclusters' }
const namespace = 'shop'

describe('a member with a real node', function () {
  this.timeout(120_000)
  const stack = new AsyncDisposableStack()
  let up: KubeClient
  let east: Cluster
  let members: Members
  let memberId: string
  let space: string
  let uid: string
  let pod: KubeObject

  before(async function () {
    await needsNodes(this)
    this.timeout(300_000)
    const life = new AbortController()
    const log = createLogger({ level: (process.env['KCP_TEST_LOG'] as 'debug' | undefined) ?? 'error' })
    const started = async (options: ClusterOptions): Promise<Cluster> => stack.use(await startCluster(options))
    const [hostCluster, upCluster, member] = await Promise.all([
      started({ name: 'host' }),
      started({ name: 'up', flags: { 'kube-apiserver': ['--disable-admission-plugins=ServiceAccount'] } }),
      started({ name: 'east', nodes: 1 }),
    ])
    east = member
    const host = await clientOf(hostCluster.kubeconfig, stack)
    up = await clientOf(upCluster.kubeconfig, stack)
    for (const client of [host, up]) await ensureCrds(client, { crds: kcpCrds(), signal })
    const acme: KubeObject = { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name: 'acme' } }
    uid = (await host.create(logicalClusters, acme, { signal })).metadata.uid ?? ''
    space = `${clusterIdOf(uid)}-${namespace}`
    const controllers = memberControllers({ advertise: { host: '192.0.2.9', port: 7443 }, drainSeconds: 3 })
    stack.use(
      await startOperator({
        clusters: host,
        virtual: (basePath) => (basePath === '/clusters/*' ? asWildcard(up, 'acme') : up),
        urls: () => ({ url: 'https://kcp.example' }),
        issuer: createPki(await createPkiMaterial()),
        controllers: controllers.filter(({ name }) => name !== 'logical-cluster'),
        log,
        signal: life.signal,
      }),
    )
    stack.defer(() => life.abort())
    const transport = stack.use(
      httpTransport(await loadKubeconfig({ file: hostCluster.kubeconfig }, { trusted: true })),
    )
    members = stack.use(createMembers({ transport, log, signal: life.signal }))
    const memberKubeconfig = await loadKubeconfig({ file: east.kubeconfig }, { trusted: true })
    memberId = (await joinMember({ name: 'east', memberKubeconfig, clusters: host, log, signal })).id
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  const connection = (subresource: 'log' | 'exec', query: string) => ({
    cluster: { name: 'acme', id: clusterIdOf(uid), uid, creationTimestamp: '', owners: [], deleting: false } as never,
    pod,
    subresource,
    method: 'GET',
    query,
    rawHeaders: [] as string[],
    signal,
  })

  it('runs a pod that is placed there', async () => {
    await up.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }, { signal })
    const labels = { app: 'web' }
    const container = { name: 'web', image: agnhostImage, args: ['netexec', '--http-port=8080'] }
    const template = { metadata: { labels }, spec: { terminationGracePeriodSeconds: 0, containers: [container] } }
    const ports = [{ port: 80, targetPort: 8080 }]
    await up.create(
      services,
      { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web', namespace }, spec: { selector: labels, ports } },
      { signal },
    )
    const spec = { replicas: 1, selector: { matchLabels: labels }, template }
    await up.create(
      deployments,
      { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', namespace }, spec },
      { signal },
    )
    await waitFor(
      async () =>
        (
          (await up.get(deployments, { namespace, name: 'web' }, { signal }))['status'] as
            { availableReplicas?: number } | undefined
        )?.availableReplicas === 1,
      { what: 'the pod available upstream', deadlineMs: 60_000 },
    )
    const { items } = JSON.parse((await east.kubectl(['get', 'pods', '-n', space, '-o', 'json'])).stdout) as {
      items: KubeObject[]
    }
    // An ordinary upstream assigns its own uids; ours keeps the member's.
    pod = { ...items[0]!, metadata: { ...items[0]!.metadata, namespace, annotations: { 'kcp.dev/member': 'east' } } }
  })

  for (const name of ['web', 'web.shop', 'web.shop.svc', 'web.shop.svc.cluster.local', 'web.shop.svc.cluster.local.']) {
    it(`lets it call ${name}`, async () => {
      await waitFor(
        () =>
          east.kubectl([
            'exec',
            '-n',
            space,
            pod.metadata.name ?? '',
            '--',
            '/agnhost',
            'connect',
            `${name}:80`,
            '--timeout=2s',
          ]),
        { what: name, deadlineMs: 40_000 },
      )
    })
  }

  it('returns its logs, only for the right pod uid', async () => {
    const response = await members.podConnector.request(connection('log', ''))
    let text = ''
    for await (const chunk of response.body) text += Buffer.from(chunk).toString()
    expect([response.status, text]).to.satisfy(
      ([status, log]: [number, string]) => status === 200 && log.includes('Started HTTP server'),
    )
    const other = { ...connection('log', ''), pod: { ...pod, metadata: { ...pod.metadata, uid: 'another' } } }
    let refused: unknown
    await members.podConnector.request(other).catch((error: unknown) => (refused = error))
    expect(refused).to.have.property('reason', 'NotFound')
  })

  it('connects a WebSocket to its processes', async () => {
    const key = Buffer.from('0123456789abcdef').toString('base64')
    const rawHeaders = [
      'Connection',
      'Upgrade',
      'Upgrade',
      'websocket',
      'Sec-WebSocket-Version',
      '13',
      'Sec-WebSocket-Key',
      key,
      'Sec-WebSocket-Protocol',
      'v5.channel.k8s.io',
      'Authorization',
      'Bearer of-the-tenant',
    ]
    const answer = await members.podConnector.upgrade({
      ...connection('exec', '?command=/agnhost&command=--help&stdout=true'),
      rawHeaders,
    })
    if ('refused' in answer) throw new Error(`refused with ${answer.refused.status}`)
    const { socket, head } = answer.upgraded
    let bytes = Buffer.from(head).toString('latin1')
    for await (const chunk of socket) {
      bytes += (chunk as Buffer).toString('latin1')
      if (bytes.includes('Usage')) break
    }
    expect(bytes).to.contain('Usage')
  })

  it('verifies tokens of its living pods, for our audience only', async () => {
    const audience = `${clusterIdOf(uid)}.${memberId}`
    const bound = [
      '--bound-object-kind=Pod',
      `--bound-object-name=${pod.metadata.name ?? ''}`,
      `--bound-object-uid=${pod.metadata.uid ?? ''}`,
    ]
    const token = async (...flags: string[]): Promise<string> =>
      (await east.kubectl(['create', 'token', 'default', '-n', space, ...flags])).stdout.trim()
    const identity = await members.memberTokens.verify(
      memberId,
      await token(`--audience=${audience}`, ...bound),
      signal,
    )
    expect(identity).to.have.nested.property('serviceAccount.namespace', space)
    expect(await members.memberTokens.verify(memberId, await token(`--audience=${audience}`), signal)).to.equal(
      undefined,
    )
    expect(await members.memberTokens.verify(memberId, await token(...bound), signal)).to.equal(undefined)
    const another = `${clusterIdOf('another')}.${memberId}`
    expect(
      await members.memberTokens.verify(memberId, await token(`--audience=${another}`, ...bound), signal),
    ).to.equal(undefined)
  })
})
