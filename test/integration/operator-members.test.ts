// The operator's requests to host and members, with a real API server in both roles.
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { sharedInformers, type KubeClient } from '#client/index.ts'
import {
  installationAnnotation,
  installationKeysName,
  kcpCrds,
  locatorAnnotation,
  managedLabel,
  memberParts,
  placedOnAnnotation,
  syncerFinalizer,
  systemNamespace,
  workloadKinds,
  type LogicalCluster,
} from '#crds/index.ts'
import { ensureCrds } from '#operator/index.ts'
import { apply } from '#operator/logical-cluster/apply.ts'
import { findContent } from '#operator/logical-cluster/observe.ts'
import { PlacedWorkloads } from '#operator/member-cluster/placed-workloads.ts'
import { removeInstallation } from '#operator/member-cluster/remove-installation.ts'
import { releaseGone } from '#operator/placement/release-gone.ts'
import { silentLogger } from '#telemetry/index.ts'
import { startCluster, waitFor } from '#test/support/index.ts'
import { asWildcard, clientOf } from './syncer/ordinary-upstream.ts'

const core = (resource: string) => ({ group: '', version: 'v1', resource })
const deployments = { group: 'apps', version: 'v1', resource: 'deployments' }
const signal = new AbortController().signal

describe('the operator and its members', function () {
  this.timeout(60_000)
  const stack = new AsyncDisposableStack()
  let client: KubeClient

  before(async function () {
    this.timeout(300_000)
    const flags = { 'kube-apiserver': ['--disable-admission-plugins=ServiceAccount'] }
    const cluster = stack.use(await startCluster({ name: 'host', flags }))
    client = await clientOf(cluster.kubeconfig, stack)
    await ensureCrds(client, { crds: kcpCrds(), signal })
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  const create = (resource: string, kind: string, name: string, more: Partial<KubeObject> = {}) =>
    client.create(
      core(resource),
      { apiVersion: 'v1', kind, ...more, metadata: { name, ...(more.metadata ?? { namespace: systemNamespace }) } },
      { signal },
    )
  const exists = async (resource: string, name: string): Promise<boolean> =>
    (await client.tryGet(core(resource), { namespace: systemNamespace, name }, { signal })) !== undefined

  const ours = { clusterIds: new Set(['abcdefghij']), installation: 'this-one' }

  it('removes only its own objects from a member that is also the host of an installation', async () => {
    await create('namespaces', 'Namespace', systemNamespace, { metadata: {} })
    const locator = JSON.stringify({ cluster: 'a', clusterId: 'abcdefghij', namespace: '', name: 'shop', uid: 'u' })
    const copy = { labels: { [managedLabel]: 'true' }, annotations: { [locatorAnnotation]: locator } }
    await create('namespaces', 'Namespace', 'abcdefghij-shop', { metadata: copy })
    await create('secrets', 'Secret', installationKeysName)
    await create('configmaps', 'ConfigMap', 'kcp-apiserver')
    await create('configmaps', 'ConfigMap', memberParts.nameserver)
    await create('serviceaccounts', 'ServiceAccount', memberParts.nameserver)
    await create('serviceaccounts', 'ServiceAccount', memberParts.syncerAccount)
    await removeInstallation(client, ours, signal)
    const ended = async (name: string): Promise<boolean> => {
      const found = await client.tryGet<KubeObject>(core('namespaces'), { name }, { signal })
      return found === undefined || found.metadata.deletionTimestamp !== undefined
    }
    expect(await ended('abcdefghij-shop')).to.equal(true)
    expect(await ended(systemNamespace), 'the namespace of the keys').to.equal(false)
    expect(await exists('secrets', installationKeysName)).to.equal(true)
    expect(await exists('configmaps', 'kcp-apiserver')).to.equal(true)
    expect(await exists('configmaps', memberParts.nameserver)).to.equal(false)
    expect(await exists('serviceaccounts', memberParts.syncerAccount)).to.equal(false)
    // What another installation took over is its own now.
    await client.delete(core('secrets'), { namespace: systemNamespace, name: installationKeysName }, { signal })
    const annotations = { [installationAnnotation]: 'another-one' }
    const other = { namespace: systemNamespace, annotations }
    await create('serviceaccounts', 'ServiceAccount', memberParts.syncerAccount, { metadata: other })
    await removeInstallation(client, ours, signal)
    expect(await ended(systemNamespace), 'the namespace of another installation').to.equal(false)
    expect(await exists('serviceaccounts', memberParts.syncerAccount)).to.equal(true)
    await client.delete(
      core('serviceaccounts'),
      { namespace: systemNamespace, name: memberParts.syncerAccount },
      { signal },
    )
    // A member that is not a host loses the whole namespace.
    await removeInstallation(client, ours, signal)
    expect(await ended(systemNamespace)).to.equal(true)
  })

  const deployment = (name: string, metadata: KubeObject['metadata']): KubeObject => ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { ...metadata, name, namespace: 'default' },
    spec: {
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'c', image: 'c' }] } },
    },
  })

  it('ends the pods of a deleted logical cluster though finalizers of its tenant hold their workloads', async () => {
    const finalizers = { ours: [syncerFinalizer('east')], both: [syncerFinalizer('east'), 'example.com/x'] }
    const names = ['plain', 'held', 'held-and-deleted'] as const
    for (const name of names)
      await client.create(
        deployments,
        deployment(name, { finalizers: name === 'plain' ? finalizers.ours : finalizers.both }),
        { signal },
      )
    const background = { propagationPolicy: 'Background', signal } as const
    await client.delete(deployments, { namespace: 'default', name: 'held-and-deleted' }, background)
    const content = async () => findContent(client, new Set(['east']), signal)
    const unused = (): Promise<never> => Promise.reject(new Error('not called'))
    const { held, orphaned } = await content()
    expect(held.map(({ name }) => name).sort()).to.deep.equal(['held', 'held-and-deleted', 'plain'])
    const object = {
      apiVersion: 'kcp.dev/v1alpha1',
      kind: 'LogicalCluster',
      metadata: { name: 'acme' },
    } as LogicalCluster
    const context = { object, virtual: client, held, orphaned }
    await apply(
      { do: 'deleteObjects' },
      { ...context, removeKubeconfigs: unused, setStatus: unused, withFinalizer: unused },
      signal,
    )
    for (const name of names) {
      const { metadata } = await client.get<KubeObject>(deployments, { namespace: 'default', name }, { signal })
      expect(metadata, name).to.have.property('deletionTimestamp')
      expect(metadata.finalizers?.includes('foregroundDeletion'), name).to.equal(name !== 'plain')
    }
    expect((await content()).held, 'left to be deleted').to.deep.equal([])
    for (const name of names)
      await client.patch(
        deployments,
        { namespace: 'default', name },
        'merge',
        { metadata: { finalizers: null } },
        { signal },
      )
  })

  it('knows the placed workloads of each member from one watch', async () => {
    const life = new AbortController()
    let lists = 0
    const counting = countingLists(asWildcard(client, 'acme'), () => lists++)
    const informerOptions = { allClusters: true, log: silentLogger, signal: life.signal }
    using placed = new PlacedWorkloads(sharedInformers(counting, informerOptions), () => [])
    expect(await placed.of('east', signal)).to.deep.equal([])
    const decision = JSON.stringify({ east: { state: 'Serving' }, west: { state: 'Held' } })
    await client.create(deployments, deployment('decided', { annotations: { [placedOnAnnotation]: decision } }), {
      signal,
    })
    await client.create(deployments, deployment('marked', { finalizers: [syncerFinalizer('west')] }), { signal })
    const seen = async (member: string): Promise<string> => (await placed.of(member, signal)).join()
    const within = { what: 'the watch to tell', deadlineMs: 30_000 }
    await waitFor(async () => (await seen('east')) === 'acme/default/decided', within)
    await waitFor(async () => (await seen('west')) === 'acme/default/marked', within)
    await client.delete(deployments, { namespace: 'default', name: 'decided' }, { signal })
    await waitFor(async () => (await seen('east')) === '', within)
    expect(lists, 'one for each kind, and one for claims').to.equal(workloadKinds.length + 1)
    life.abort()
  })

  it('looks up deleted members once, however many names a tenant wrote into finalizers', async () => {
    const names = Array.from({ length: 300 }, (_, i) => `never-was-${i}`)
    const made = await client.create<KubeObject>(
      deployments,
      deployment('hostile', { finalizers: names.map(syncerFinalizer) }),
      { signal },
    )
    let questions = 0
    const clusters = countingLists(client, () => questions++)
    const gone = await releaseGone({ clusters, client, workload: made, members: names, signal })
    expect(gone).to.have.length(300)
    expect(questions).to.equal(1)
    const after = await client.get<KubeObject>(deployments, { namespace: 'default', name: 'hostile' }, { signal })
    expect(after.metadata.finalizers ?? []).to.deep.equal([])
  })
})

/** The same client; calls `told` for every get and list. */
function countingLists(client: KubeClient, told: () => void): KubeClient {
  return new Proxy(client, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property)
      if (typeof value !== 'function') return value
      if (['get', 'tryGet', 'list'].includes(String(property)))
        return (...args: unknown[]): unknown => {
          told()
          return Reflect.apply(value, target, args)
        }
      return value.bind(target) as unknown
    },
  })
}
