// The state of a member after its MemberCluster was deleted: nothing that joining made is left, unless another
// installation has joined the member since.
import { expect } from 'chai'
import type { GroupVersionResource, KubeObject } from '#apimachinery/meta/index.ts'
import { createClient, httpTransport, loadKubeconfig, type KubeClient } from '#client/index.ts'
import { installationKeysName, kcpCrds, systemNamespace } from '#crds/index.ts'
import { ensureCrds } from '#operator/index.ts'
import { removeInstallation } from '#operator/member-cluster/remove-installation.ts'
import { joinMember } from '#syncer/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import { startCluster, waitFor, type Cluster } from '#test/support/index.ts'
import { clientOf } from './syncer/ordinary-upstream.ts'

const signal = new AbortController().signal
const core = (resource: string): GroupVersionResource => ({ group: '', version: 'v1', resource })

interface ResourceList {
  readonly resources: readonly { readonly name: string; readonly verbs: readonly string[] }[]
}

/** `RESOURCE NAMESPACE/NAME` of every object in a cluster, but for what it makes itself meanwhile. */
async function everything(client: KubeClient): Promise<string[]> {
  const { groups } = (await client.raw('/apis', { signal })) as {
    groups: readonly { readonly name: string; readonly preferredVersion: { readonly version: string } }[]
  }
  const found: string[] = []
  for (const { group, version } of [
    { group: '', version: 'v1' },
    ...groups.map(({ name, preferredVersion }) => ({ group: name, version: preferredVersion.version })),
  ]) {
    const path = group === '' ? '/api/v1' : `/apis/${group}/${version}`
    for (const { name: resource, verbs } of ((await client.raw(path, { signal })) as ResourceList).resources) {
      if (!verbs.includes('list') || !verbs.includes('delete') || ['events', 'leases'].includes(resource)) continue
      const { items } = await client.list<KubeObject>({ group, version, resource }, { signal })
      for (const { metadata } of items) found.push(`${resource} ${metadata.namespace ?? ''}/${metadata.name}`)
    }
  }
  return found.sort()
}

describe('a member whose MemberCluster is deleted', function () {
  this.timeout(120_000)
  const stack = new AsyncDisposableStack()
  const installations: { client: KubeClient; uid: string }[] = []
  let cluster: Cluster
  let member: KubeClient
  let clean: string[]

  before(async function () {
    this.timeout(300_000)
    for (const name of ['one', 'two']) {
      const client = await clientOf(stack.use(await startCluster({ name })).kubeconfig, stack)
      await ensureCrds(client, { crds: kcpCrds(), signal })
      const { metadata } = await client.get<KubeObject>(core('namespaces'), { name: 'kube-system' }, { signal })
      installations.push({ client, uid: metadata.uid ?? '' })
    }
    cluster = stack.use(await startCluster({ name: 'east', controllerManager: true }))
    member = await clientOf(cluster.kubeconfig, stack)
    await waitFor(
      async () =>
        (await member.tryGet(core('configmaps'), { namespace: 'default', name: 'kube-root-ca.crt' }, { signal })) ??
        false,
      { what: 'the controllers of the member', deadlineMs: 60_000 },
    )
    await settled()
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  /** Waits until two looks see the same, and keeps that as what a member without kcp has. */
  const settled = async (): Promise<void> => {
    clean = await waitFor(
      async () => {
        const [first, second] = [await everything(member), await everything(member)]
        return first.join() === second.join() ? first : undefined
      },
      { what: 'the member to make nothing more by itself', deadlineMs: 60_000 },
    )
  }
  const join = async (index: number): Promise<void> => {
    const memberKubeconfig = await loadKubeconfig({ file: cluster.kubeconfig }, { trusted: true })
    await joinMember({
      name: 'east',
      memberKubeconfig,
      clusters: installations[index]!.client,
      log: silentLogger,
      signal,
    })
  }
  /** With the credentials that joining gave to the installation. */
  const remove = async (index: number): Promise<void> => {
    const { client, uid } = installations[index]!
    const ref = { namespace: systemNamespace, name: 'member-east' }
    const secret = await client.get<KubeObject & { data: { kubeconfig: string } }>(core('secrets'), ref, { signal })
    const text = Buffer.from(secret.data.kubeconfig, 'base64').toString()
    await using transport = httpTransport(await loadKubeconfig({ text }))
    await removeInstallation(createClient(transport), { clusterIds: new Set(), installation: uid }, signal)
  }
  const untilLeft = async (expected: readonly string[]): Promise<void> => {
    const difference = async (): Promise<string> => {
      const now = await everything(member)
      return [
        ...now.filter((one) => !expected.includes(one)).map((one) => `+ ${one}`),
        ...expected.filter((one) => !now.includes(one)).map((one) => `- ${one}`),
      ].join('\n')
    }
    let last = ''
    await waitFor(async () => (last = await difference()) === '', {
      what: 'what is left to be what is expected',
      deadlineMs: 60_000,
    }).catch(() => expect(last).to.equal(''))
  }
  const isStable = async (): Promise<string[]> => (await settled(), clean)

  it('has nothing of kcp', async () => {
    await join(0)
    expect(await everything(member)).to.include.members([
      'clusterroles /kcp-syncer',
      'clusterrolebindings /kcp-gateway',
    ])
    await remove(0)
    await untilLeft(clean)
  })

  it('has everything again when it is joined at once', async () => {
    const former = clean
    await join(0)
    const joined = await isStable()
    await remove(0)
    await join(0)
    await untilLeft(joined)
    await remove(0)
    await untilLeft(former)
  })

  it('keeps what another installation that joined it has', async () => {
    const former = await isStable()
    await join(0)
    await join(1)
    const joined = await isStable()
    await remove(0)
    expect(await isStable()).to.deep.equal(joined)
    await remove(1)
    await untilLeft(former)
  })

  it('keeps the namespace and the keys of an installation that it hosts', async () => {
    const metadata = { namespace: systemNamespace, name: installationKeysName }
    await member.create(
      core('namespaces'),
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: systemNamespace } },
      { signal },
    )
    await member.create(core('secrets'), { apiVersion: 'v1', kind: 'Secret', metadata }, { signal })
    const hosting = await isStable()
    await join(0)
    await remove(0)
    await untilLeft(hosting)
  })
})
