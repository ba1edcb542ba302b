// Service network Gateway, up to what the gateways are told: the program itself is tested in test/integration/gateway.
import { X509Certificate } from 'node:crypto'
import { expect } from 'chai'
import { clusterIdOf, type KubeObject } from '#apimachinery/meta/index.ts'
import { memberControllers } from '#cli/roles/member-controllers.ts'
import { loadKubeconfig, type KubeClient } from '#client/index.ts'
import { adoptions, isConditionTrue, kcpCrds, memberClusters, type Adoption, type MemberCluster } from '#crds/index.ts'
import { ensureCrds, startOperator } from '#operator/index.ts'
import { joinMember } from '#syncer/index.ts'
import { createLogger } from '#telemetry/index.ts'
import { createPki, createPkiMaterial } from '#virtualapi/index.ts'
import { startCluster, waitFor, type Cluster, type ClusterOptions } from '#test/support/index.ts'
import { asWildcard, clientOf } from './ordinary-upstream.ts'
import { simulateKubelet } from './played-member.ts'

const signal = new AbortController().signal
const namespace = 'shop'
const core = (resource: string) => ({ group: '', version: 'v1', resource })
const deployments = { group: 'apps', version: 'v1', resource: 'deployments' }
const slices = { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices' }
const logicalClusters = { group: 'kcp.dev', version: 'v1alpha1', resource: 'logicalclusters' }
const system = 'kcp-system'
const gateway = 'kcp-gateway'

interface Slice extends KubeObject {
  endpoints?: { addresses: string[] }[] | null
  ports?: { name: string; port: number }[]
}

describe('members with gateways', function () {
  this.timeout(90_000)
  const stack = new AsyncDisposableStack()
  const members: Record<string, KubeClient> = {}
  let host: KubeClient
  let up: KubeClient
  let id: string

  const until = async <T>(what: string, attempt: () => Promise<T | undefined | false>): Promise<T> =>
    await waitFor(async () => (await attempt()) || undefined, { what, deadlineMs: 45_000 })
  const member = (name: string): KubeClient => members[name]!
  const conditionOf = async (name: string): Promise<string | undefined> => {
    const { status } = await host.get<MemberCluster>(memberClusters, { name }, { signal })
    const found = status?.conditions?.find(({ type }) => type === 'GatewayReady')
    return found && `${found.status} ${found.reason}`
  }
  const setNetwork = async (name: string, serviceNetwork: object): Promise<unknown> =>
    await host.patch(memberClusters, { name }, 'merge', { spec: { serviceNetwork } }, { signal })
  const peersIn = async (name: string): Promise<KubeObject[]> =>
    (
      await member(name).list<KubeObject>(core('configmaps'), {
        namespace: system,
        labelSelector: 'kcp.dev/gateway-peer=true',
        signal,
      })
    ).items
  const remoteSlices = async (name: string, service = 'web'): Promise<Slice[]> =>
    (
      await member(name).list<Slice>(slices, {
        namespace: `${id}-${namespace}`,
        labelSelector: `endpointslice.kubernetes.io/managed-by=kcp-syncer,kubernetes.io/service-name=${service}`,
        signal,
      })
    ).items
  const application = async (
    name: string,
    clusters: string,
    service: object = {},
    space: string = namespace,
  ): Promise<void> => {
    const labels = { app: name }
    const template = { metadata: { labels }, spec: { containers: [{ name, image: 'example/web:1' }] } }
    await up.create(
      core('services'),
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name, namespace: space },
        spec: { selector: labels, ports: [{ name: 'http', port: 80, targetPort: 8080 }], ...service },
      },
      { signal },
    )
    await up.create(
      deployments,
      {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name, namespace: space, annotations: { 'kcp.dev/clusters': clusters } },
        spec: { replicas: 2, selector: { matchLabels: labels }, template },
      },
      { signal },
    )
  }

  before(async function () {
    this.timeout(300_000)
    const life = new AbortController()
    const log = createLogger({ level: (process.env['KCP_TEST_LOG'] as 'debug' | undefined) ?? 'error' })
    const flags = { 'kube-apiserver': ['--disable-admission-plugins=ServiceAccount'] }
    const started = async (options: ClusterOptions): Promise<Cluster> => stack.use(await startCluster(options))
    const [hostCluster, upCluster, ofMembers] = await Promise.all([
      started({ name: 'host' }),
      started({ name: 'up', flags }),
      Promise.all(['east', 'west'].map((name) => started({ name, controllerManager: true }))),
    ])
    host = await clientOf(hostCluster.kubeconfig, stack)
    up = await clientOf(upCluster.kubeconfig, stack)
    for (const client of [host, up]) await ensureCrds(client, { crds: kcpCrds(), signal })
    const object = { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name: 'acme' } }
    id = clusterIdOf((await host.create<KubeObject>(logicalClusters, object, { signal })).metadata.uid ?? '')
    for (const [index, cluster] of ofMembers.entries()) {
      const { name } = cluster
      members[name] = await clientOf(cluster.kubeconfig, stack)
      simulateKubelet(member(name), { subnet: `10.9${index}.0`, signal: life.signal })
      const memberKubeconfig = await loadKubeconfig({ file: cluster.kubeconfig }, { trusted: true })
      await joinMember({ name, memberKubeconfig, clusters: host, serviceNetwork: 'Gateway', log, signal })
    }
    await up.create(
      core('namespaces'),
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
      { signal },
    )
    const controllers = memberControllers({
      advertise: { host: 'kcp.example', port: 7443 },
      drainSeconds: 1,
      soakSeconds: 1,
    })
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
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  it('say what their gateway waits for, and take the address that an admin gives', async () => {
    await until('no address', async () => (await conditionOf('east')) === 'False NoAddress')
    for (const [name, gatewayAddress] of [
      ['east', 'east.example:8443'],
      ['west', '192.0.2.7:30443'],
    ] as const) {
      await setNetwork(name, { gatewayAddress })
      await until('the gateway', async () => (await conditionOf(name)) === 'True Available')
      const { status } = await host.get<MemberCluster>(memberClusters, { name }, { signal })
      expect(status?.gateway?.address).to.equal(gatewayAddress)
      const [certificate = ''] = status?.gateway?.certificates ?? []
      expect(new X509Certificate(certificate).subject).to.equal(`CN=kcp-gateway ${name}`)
    }
  })

  it('are told of each other, and of the logical clusters that may reach them', async () => {
    await application('web', 'east')
    const [peer] = await until('east as a peer with acme', async () => {
      const found = await peersIn('west')
      return (found[0]?.['data'] as { clusters?: string } | undefined)?.clusters === id && found
    })
    expect(peer?.metadata.annotations).to.include({ 'kcp.dev/member': 'east' })
    expect(peer?.['data']).to.include({ address: 'east.example:8443' })
    const [other] = await peersIn('east')
    expect(other?.['data']).to.include({ clusters: '' })
  })

  it('reach Services in each other at ports of their own gateway', async () => {
    await application('api', 'west')
    const [slice] = await until('the endpoints of web in west', async () => {
      const found = (await remoteSlices('west')).filter(({ endpoints }) => (endpoints ?? []).length > 0)

      return found.length > 0 && found
    })
    const { items } = await member('west').list<KubeObject>(core('pods'), { namespace: system, signal })
    const addresses = items
      .filter(({ metadata }) => metadata.labels?.['app.kubernetes.io/name'] === gateway)
      .map((pod) => (pod['status'] as { podIP?: string }).podIP)
    expect(addresses).to.have.length(2)
    await until('all addresses of the gateway', async () => {
      const found = (await remoteSlices('west'))[0]?.endpoints?.map(({ addresses: [address] }) => address)
      return JSON.stringify(found?.toSorted()) === JSON.stringify(addresses.toSorted())
    })
    expect(slice?.metadata.annotations).to.include({
      'kcp.dev/gateway-target': JSON.stringify({ namespace: `${id}-${namespace}`, service: 'web' }),
      'kcp.dev/ready-endpoints': '2',
    })
    const [port] = slice?.ports ?? []
    expect(port?.name).to.equal('http')
    expect(port?.port).to.be.within(10_000, 29_999)
  })

  it('count the endpoints behind a gateway, so that a move knows when clients know the new ones', async () => {
    await until('the counts', async () => {
      const { metadata } = await up.get<KubeObject>(core('services'), { namespace, name: 'web' }, { signal })
      return metadata.annotations?.['status.kcp.dev/west'] === '{"endpoints":{"east":2}}'
    })
    await up.patch(
      deployments,
      { namespace, name: 'web' },
      'merge',
      { metadata: { annotations: { 'kcp.dev/clusters': 'west' } } },
      { signal },
    )
    await until('the end of the move', async () => {
      const { metadata } = await up.get<KubeObject>(deployments, { namespace, name: 'web' }, { signal })
      const placed = JSON.parse(metadata.annotations?.['kcp.dev/placed-on'] ?? '{}') as Record<
        string,
        { state: string }
      >
      return Object.keys(placed).join() === 'west' && placed['west']?.state === 'Serving'
    })
    await until('no remote endpoints in west', async () => (await remoteSlices('west')).length === 0)
    await until('east may reach nothing', async () =>
      (await peersIn('west')).every(({ data }) => (data as { clusters: string }).clusters === ''),
    )
  })

  it('do not carry headless Services, and moves do not wait for that', async () => {
    await application('peers', 'east', { clusterIP: 'None' })
    const isServing = async (where: string): Promise<boolean> => {
      const { metadata } = await up.get<KubeObject>(deployments, { namespace, name: 'peers' }, { signal })
      const placed = JSON.parse(metadata.annotations?.['kcp.dev/placed-on'] ?? '{}') as Record<
        string,
        { state: string }
      >
      return Object.keys(placed).join() === where && placed[where]?.state === 'Serving'
    }
    await until('serving in east', () => isServing('east'))
    expect(await remoteSlices('west', 'peers')).to.have.length(0)
    await up.patch(
      deployments,
      { namespace, name: 'peers' },
      'merge',
      { metadata: { annotations: { 'kcp.dev/clusters': 'west' } } },
      { signal },
    )
    await until('serving in west', () => isServing('west'))
  })

  it('carry the Services of an adopted namespace, which gateways call by its usual name', async () => {
    const old = 'legacy'
    const usual = `${id}-${old}`
    const labels = { app: 'old' }
    const template = { metadata: { labels }, spec: { containers: [{ name: 'old', image: 'example/old:1' }] } }
    const east = member('east')
    const metadata = { name: 'old', namespace: old }
    await east.create(
      core('namespaces'),
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: old, labels: { 'kcp.dev/adoptable-by': id } } },
      { signal },
    )
    const ports = [{ name: 'http', port: 80, targetPort: 8080 }]
    await east.create(
      core('services'),
      { apiVersion: 'v1', kind: 'Service', metadata, spec: { selector: labels, ports } },
      { signal },
    )
    await east.create(
      deployments,
      { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec: { selector: { matchLabels: labels }, template } },
      { signal },
    )
    const spec = { member: 'east', namespace: old, logicalCluster: 'acme', mode: 'Adopt' } as const
    await host.create(
      adoptions,
      { apiVersion: 'kcp.dev/v1alpha1', kind: 'Adoption', metadata: { name: 'east.legacy' }, spec },
      { signal },
    )
    let told = ''
    const isAdopted = async (): Promise<boolean> => {
      const { status } = await host.get<Adoption>(adoptions, { name: 'east.legacy' }, { signal })
      told = JSON.stringify(status)
      return isConditionTrue({ status: { conditions: status?.conditions ?? [] } }, 'Adopted')
    }
    await until('the adoption', isAdopted).catch((error: unknown) => {
      throw new Error(told, { cause: error })
    })
    const names = async (): Promise<unknown> =>
      (
        await east.tryGet<KubeObject>(
          core('configmaps'),
          { namespace: system, name: 'kcp-gateway-namespaces' },
          { signal },
        )
      )?.['data']
    await until('the name', async () => JSON.stringify(await names()) === JSON.stringify({ [old]: usual }))
    await application('new', 'west', {}, old)
    const targets = async (where: string, space: string): Promise<string[]> => {
      const labelSelector = 'endpointslice.kubernetes.io/managed-by=kcp-syncer'
      const { items } = await member(where).list<Slice>(slices, { namespace: space, labelSelector, signal })
      return items
        .filter(({ endpoints }) => (endpoints ?? []).length > 0)
        .map(({ metadata }) => metadata.annotations?.['kcp.dev/gateway-target'] ?? '')
    }
    const leadsTo = (where: string, space: string, service: string): Promise<unknown> =>
      until(`the way from ${where} to ${service}`, async () =>
        (await targets(where, space)).includes(JSON.stringify({ namespace: usual, service })),
      )
    await leadsTo('west', usual, 'old')
    await leadsTo('east', old, 'new')
  })

  it('lose their gateway, and the others forget them, when their service network is another one', async () => {
    await setNetwork('east', { type: 'None', gatewayAddress: null })
    await until('nothing left of it', async () => {
      const left = await Promise.all([
        member('east').tryGet(deployments, { namespace: system, name: gateway }, { signal }),
        member('east').tryGet(core('secrets'), { namespace: system, name: gateway }, { signal }),
        member('east').tryGet(core('configmaps'), { namespace: system, name: 'kcp-gateway-namespaces' }, { signal }),
      ])
      return left.every((object) => object === undefined) && (await peersIn('east')).length === 0
    })
    await until('no peers', async () => (await peersIn('west')).length === 0)
    const { status } = await host.get<MemberCluster>(memberClusters, { name: 'east' }, { signal })
    expect(status).to.not.have.property('gateway')
    expect(await conditionOf('east')).to.equal(undefined)
  })
})
