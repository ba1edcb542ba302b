// The rights of the syncer's identity in a member: writes in namespaces of logical clusters, and nowhere else, though
// its ClusterRole holds for all namespaces. Its token lives for a day.
import { expect } from 'chai'
import { decodeJwt } from 'jose'
import { parse } from 'yaml'
import { clusterIdOf, type KubeObject } from '#apimachinery/meta/index.ts'
import type { Clock } from '#async/index.ts'
import { createClient, httpTransport, loadKubeconfig, type KubeClient } from '#client/index.ts'
import { kcpCrds, locatorAnnotation, memberClusters, type MemberCluster } from '#crds/index.ts'
import { requestMemberToken } from '#client/member/index.ts'
import { ensureCrds, MemberApis, memberClusterController, startOperator } from '#operator/index.ts'
import { joinMember } from '#syncer/index.ts'
import { createLogger, silentLogger } from '#telemetry/index.ts'
import { createPki, createPkiMaterial } from '#virtualapi/index.ts'
import { startCluster, waitFor, type Cluster } from '#test/support/index.ts'
import { asWildcard } from './syncer/ordinary-upstream.ts'

const signal = new AbortController().signal
const namespaces = { group: '', version: 'v1', resource: 'namespaces' } as const
const configMaps = { group: '', version: 'v1', resource: 'configmaps' } as const
const secrets = { group: '', version: 'v1', resource: 'secrets' } as const
const id = clusterIdOf('acme')
const other = clusterIdOf('other')
const ours = `${id}-shop`

describe('the identity of the syncer in a member', function () {
  this.timeout(60_000)
  const stack = new AsyncDisposableStack()
  let cluster: Cluster
  let admin: KubeClient
  let syncer: KubeClient
  let token: string

  before(async function () {
    this.timeout(300_000)
    // One cluster in both roles: the host is a member.
    cluster = stack.use(await startCluster({ name: 'east' }))
    const memberKubeconfig = await loadKubeconfig({ file: cluster.kubeconfig }, { trusted: true })
    admin = createClient(stack.use(httpTransport(memberKubeconfig)))
    await ensureCrds(admin, { crds: kcpCrds(), signal })
    await joinMember({ name: 'east', memberKubeconfig, clusters: admin, log: createLogger({ level: 'error' }), signal })
    const secret = await admin.get<KubeObject>(secrets, { namespace: 'kcp-system', name: 'member-east' }, { signal })
    const text = kubeconfigIn(secret)
    token = tokenIn(text)
    syncer = createClient(stack.use(httpTransport(await loadKubeconfig({ text }))))
    // The policy counts some moments after it was written.
    await waitFor(async () => (await refusal(create(configMap('default')))) !== undefined, {
      what: 'the policy in the member',
      deadlineMs: 30_000,
    })
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  const locator = (clusterId: string): Record<string, string> => ({
    [locatorAnnotation]: JSON.stringify({ cluster: 'acme', clusterId, namespace: '', name: 'shop', uid: 'u' }),
  })
  const namespace = (name: string, annotations: Record<string, string> = {}): KubeObject => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name, annotations },
  })
  const configMap = (space: string): KubeObject => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { generateName: 'a-', namespace: space },
  })
  const create = (object: KubeObject): Promise<unknown> =>
    syncer.create(object.kind === 'Namespace' ? namespaces : configMaps, object, { signal })
  /** The message with which the member refuses; undefined if it does not. */
  const refusal = (done: Promise<unknown>): Promise<string | undefined> =>
    done.then(
      () => undefined,
      (error: unknown) => (error as Error).message,
    )

  it('creates namespaces of logical clusters, and writes and deletes in them', async () => {
    expect(await refusal(create(namespace(ours, locator(id))))).to.equal(undefined)
    expect(await refusal(create(configMap(ours)))).to.equal(undefined)
    const patch = { metadata: { labels: { 'pod-security.kubernetes.io/enforce': 'baseline' } } }
    expect(await refusal(syncer.patch(namespaces, { name: ours }, 'merge', patch, { signal }))).to.equal(undefined)
  })

  for (const { title, object } of [
    { title: 'without a locator', object: namespace(`${id}-a`) },
    { title: 'whose name begins with no id', object: namespace('monitoring', locator(id)) },
    { title: 'with the id of another logical cluster', object: namespace(`${id}-b`, locator(other)) },
  ])
    it(`creates no namespace ${title}`, async () => {
      expect(await refusal(create(object))).to.contain('kcp creates only namespaces whose name begins with the id')
    })

  it('does not take over, relabel or delete a namespace of somebody else', async () => {
    await cluster.kubectl(['create', 'namespace', `${id}-theirs`])
    const patch = { metadata: { annotations: locator(id), labels: { a: 'b' } } }
    for (const name of [`${id}-theirs`, 'kube-system', 'default'])
      expect(await refusal(syncer.patch(namespaces, { name }, 'merge', patch, { signal })), name).to.contain(
        'kcp changes only namespaces that it created',
      )
    // Kubernetes itself keeps the other two.
    expect(await refusal(syncer.delete(namespaces, { name: `${id}-theirs` }, { signal }))).to.contain(
      'kcp changes only namespaces that it created',
    )
  })

  it('writes nothing in namespaces of somebody else', async () => {
    for (const space of ['kube-system', 'default', `${id}-theirs`])
      expect(await refusal(create(configMap(space))), space).to.contain('kcp writes only in namespaces that it created')
    expect(await refusal(create(configMap('kcp-system')))).to.equal(undefined)
  })

  it('writes in a namespace that an admin of the member lets a logical cluster adopt, and cannot say so itself', async () => {
    const label = 'kcp.dev/adoptable-by'
    const change = (name: string, metadata: object): Promise<string | undefined> =>
      refusal(syncer.patch(namespaces, { name }, 'merge', { metadata }, { signal }))
    await cluster.kubectl(['create', 'namespace', 'running'])
    expect(await change('running', { labels: { [label]: id } })).to.contain('kcp changes only namespaces')
    for (const name of ['running', 'default', 'kube-system'])
      await cluster.kubectl(['label', 'namespace', name, `${label}=${id}`])
    for (const name of ['default', 'kube-system']) {
      expect(await refusal(create(configMap(name))), name).to.contain('kcp writes only in namespaces')
      expect(await change(name, { annotations: locator(id) }), name).to.contain('kcp changes only namespaces')
      await cluster.kubectl(['label', 'namespace', name, `${label}-`])
    }
    expect(await refusal(create(configMap('running')))).to.equal(undefined)
    expect(await change('running', { annotations: locator(id), labels: { 'kcp.dev/managed': 'true' } })).to.equal(
      undefined,
    )
    expect(await change('running', { labels: { [label]: other } })).to.contain(
      'only admins of the member write the label',
    )
    expect(await refusal(syncer.delete(namespaces, { name: 'running' }, { signal }))).to.contain('kcp deletes only')
    expect(await change(ours, { labels: { [label]: id } })).to.contain('only admins of the member write the label')
    const released = { labels: { [label]: null, 'kcp.dev/managed': null }, annotations: { 'kcp.dev/locator': null } }
    expect(await change('running', released)).to.equal(undefined)
    expect(await refusal(create(configMap('running')))).to.contain('kcp writes only in namespaces')
  })

  it('changes only volumes of claims in its own and in tenants namespaces, and deletes none that holds data alone', async () => {
    const volumes = { group: '', version: 'v1', resource: 'persistentvolumes' } as const
    const label = { 'kcp.dev/volume-move': 'v-1' }
    const volume = (
      name: string,
      claimed: string,
      labels: Record<string, string> = {},
      policy = 'Retain',
    ): KubeObject => ({
      ...{ apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name, labels } },
      spec: {
        ...{ capacity: { storage: '1Mi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/nonexistent' } },
        ...{ persistentVolumeReclaimPolicy: policy, storageClassName: 'none' },
        claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: claimed, name: 'data' },
      },
    })
    const foreign = 'kcp makes, changes and deletes only volumes of claims of logical clusters'
    for (const [name, space] of [
      ['theirs', 'default'],
      ['moving', 'kcp-system'],
      ['tenants', ours],
    ] as const)
      await admin.create(volumes, volume(name, space), { signal })
    const keepIt = (name: string, metadata: object = { labels: label }): Promise<string | undefined> =>
      refusal(syncer.patch(volumes, { name }, 'merge', { metadata }, { signal }))
    expect(await keepIt('theirs')).to.contain(foreign)
    expect(await keepIt('moving')).to.equal(undefined)
    expect(await keepIt('tenants', { annotations: { a: 'b' } })).to.equal(undefined)
    const stolen = { spec: { claimRef: { namespace: ours } } }
    expect(await refusal(syncer.patch(volumes, { name: 'theirs' }, 'merge', stolen, { signal }))).to.contain(foreign)
    const given = { spec: { claimRef: { namespace: 'default' } } }
    expect(await refusal(syncer.patch(volumes, { name: 'moving' }, 'merge', given, { signal }))).to.contain(
      'kcp gives volumes only to claims of logical clusters',
    )
    expect(await refusal(syncer.delete(volumes, { name: 'theirs' }, { signal }))).to.contain(foreign)
    expect(await refusal(syncer.delete(volumes, { name: 'tenants' }, { signal }))).to.contain(
      'kcp deletes only volumes',
    )
    const made = (object: KubeObject): Promise<string | undefined> =>
      refusal(syncer.create(volumes, object, { signal }))
    expect(await made(volume('forged', 'default', label))).to.contain(foreign)
    expect(await made(volume('unmarked', ours))).to.contain(foreign)
    expect(await made(volume('shared', ours, label))).to.equal(undefined)
    expect(await refusal(syncer.delete(volumes, { name: 'shared' }, { signal }))).to.equal(undefined)
    expect(await made(volume('last', ours, label, 'Delete'))).to.equal(undefined)
    expect(await refusal(syncer.delete(volumes, { name: 'last' }, { signal }))).to.contain('kcp deletes only volumes')
  })

  it('makes contents of snapshots for its own namespace, and keeps and deletes only those of claims of tenants', async () => {
    const contents = { group: 'snapshot.storage.k8s.io', version: 'v1', resource: 'volumesnapshotcontents' } as const
    const definition = {
      ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
      metadata: {
        name: 'volumesnapshotcontents.snapshot.storage.k8s.io',
        annotations: { 'api-approved.kubernetes.io': 'unapproved, for a test' },
      },
      spec: {
        ...{ group: contents.group, scope: 'Cluster' },
        names: { kind: 'VolumeSnapshotContent', plural: contents.resource },
        versions: [
          {
            ...{ name: 'v1', served: true, storage: true },
            schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
          },
        ],
      },
    }
    await cluster.kubectl(['apply', '-f', '-'], { input: definition })
    await cluster.kubectl(['wait', '--for=condition=Established', `crd/${definition.metadata.name}`, '--timeout=30s'])
    const [move, kept] = ['kcp.dev/volume-move', 'kcp.dev/volume-snapshot']
    const content = (name: string, namespace: string, label?: string): KubeObject => ({
      ...{ apiVersion: 'snapshot.storage.k8s.io/v1', kind: 'VolumeSnapshotContent' },
      metadata: { name, ...(label !== undefined && { labels: { [label]: 'x' } }) },
      spec: {
        ...{ driver: 'csi', deletionPolicy: 'Delete', source: { snapshotHandle: name } },
        volumeSnapshotRef: { namespace, name },
      },
    })
    const make = (client: KubeClient, object: KubeObject): Promise<string | undefined> =>
      refusal(client.create(contents, object, { signal }))
    for (const [name, space] of [
      ['theirs', 'default'],
      ['tenants', ours],
    ] as const)
      expect(await make(admin, content(name, space))).to.equal(undefined)
    expect(await make(syncer, content('forged', 'default', move))).to.contain('only for namespace kcp-system')
    expect(await make(syncer, content('forged', ours, kept))).to.contain('with the label kcp.dev/volume-move')
    expect(await make(syncer, content('imported', 'kcp-system', move))).to.equal(undefined)
    const keep = (name: string, spec: object = {}, label = kept): Promise<string | undefined> => {
      const patch = { metadata: { labels: { [label]: 'x' } }, spec: { deletionPolicy: 'Retain', ...spec } }
      return refusal(syncer.patch(contents, { name }, 'merge', patch, { signal }))
    }
    const only = 'kcp keeps only contents of snapshots of claims of logical clusters'
    expect(await keep('theirs')).to.contain(only)
    expect(await keep('theirs', { volumeSnapshotRef: { namespace: ours, name: 'theirs' } })).to.contain(only)
    expect(await keep('tenants', {}, move)).to.contain(only)
    expect(await keep('tenants', { source: { snapshotHandle: 'of-another' } })).to.contain(only)
    const drop = (name: string): Promise<string | undefined> => refusal(syncer.delete(contents, { name }, { signal }))
    for (const name of ['theirs', 'tenants']) expect(await drop(name)).to.contain('kcp deletes only contents')
    expect(await keep('tenants')).to.equal(undefined)
    expect(await keep('tenants', { deletionPolicy: 'Delete' })).to.equal(undefined)
    for (const name of ['tenants', 'imported']) expect(await drop(name)).to.equal(undefined)
  })

  it('has a token for a day, renews it, and can request none of another ServiceAccount', async () => {
    const { exp = 0, iat = 0 } = decodeJwt(token)
    expect(exp - iat).to.equal(24 * 3600)
    expect(await requestMemberToken(syncer, signal)).to.be.a('string')
    const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
    const metadata = { name: 'kcp-dns', namespace: 'kcp-system' }
    const accounts = { group: '', version: 'v1', resource: 'serviceaccounts' } as const
    const asked = syncer.create(accounts, { ...request, metadata }, { subresource: 'token', signal })
    expect(await refusal(asked)).to.contain('cannot create resource "serviceaccounts/token"')
    const left = await cluster.kubectl(['get', 'secret', 'kcp-syncer-token', '-n', 'kcp-system'], { expectCode: 1 })
    expect(left.stderr).to.contain('not found')
  })

  it('gets another token from the operator after half of a day, on a clock that is moved', async () => {
    const start = Date.now()
    let now = start
    const clock: Clock = { now: () => now, monotonic: () => performance.now() }
    const startSyncer = () =>
      Promise.resolve({
        suspendedDeletions: () => [],
        failures: () => undefined,
        [Symbol.asyncDispose]: () => Promise.resolve(),
      })
    const wildcard = asWildcard(admin, 'acme')
    await using _operator = await startOperator({
      clusters: admin,
      virtual: (path) => (path === '/clusters/*' ? wildcard : admin),
      urls: () => ({ url: 'https://unused.example', directURL: 'https://unused.example' }),
      issuer: createPki(await createPkiMaterial()),
      controllers: [memberClusterController({ apis: new MemberApis(), clock, startSyncer, probeSeconds: 0.2 })],
      log: silentLogger,
      signal,
    })
    const secret = (): Promise<KubeObject> =>
      admin.get<KubeObject>(secrets, { namespace: 'kcp-system', name: 'member-east' }, { signal })
    const heartbeat = async (): Promise<number> => {
      const { status } = await admin.get<MemberCluster>(memberClusters, { name: 'east' }, { signal })
      return Date.parse(status?.lastHeartbeatTime ?? '') || 0
    }
    const within = { what: 'a visit of the operator', deadlineMs: 30_000 }
    await waitFor(async () => (await heartbeat()) > 0, within)
    for (const hours of [6, 11]) {
      now = start + hours * 3_600_000
      await waitFor(async () => (await heartbeat()) >= now - 1000, within)
      expect(tokenIn(kubeconfigIn(await secret())), `after ${hours} hours`).to.equal(token)
    }
    now = start + 13 * 3_600_000
    await waitFor(async () => tokenIn(kubeconfigIn(await secret())) !== token, within)
    const renewed = kubeconfigIn(await secret())
    const { sub, exp = 0, iat = 0 } = decodeJwt(tokenIn(renewed))
    expect({ sub, seconds: exp - iat }).to.deep.equal({ sub: decodeJwt(token).sub, seconds: 24 * 3600 })
    const renewedClient = createClient(stack.use(httpTransport(await loadKubeconfig({ text: renewed }))))
    await renewedClient.get(namespaces, { name: 'kube-system' }, { signal })
  })
})

function kubeconfigIn(secret: KubeObject): string {
  return Buffer.from((secret['data'] as { kubeconfig: string }).kubeconfig, 'base64').toString()
}

function tokenIn(kubeconfig: string): string {
  return (parse(kubeconfig) as { users: [{ user: { token: string } }] }).users[0].user.token
}
