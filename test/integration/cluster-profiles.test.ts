// `kcp operator --cluster-profiles` in a real host: profiles come with their CustomResourceDefinition, follow their
// member, and are what other tools of SIG Multicluster read.
import { expect } from 'chai'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'yaml'
import { clusterProfilesController, ensureCrds, startOperator } from '#operator/index.ts'
import type { CredentialIssuer } from '#operator/framework/operator-context.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { createClient, httpTransport, loadKubeconfig } from '#client/index.ts'
import { kcpCrds } from '#crds/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import { repositoryRoot, startCluster, waitFor, type Cluster } from '#test/support/index.ts'

interface Profile extends KubeObject {
  spec: { displayName: string; clusterManager: { name: string } }
  status?: { conditions: { type: string; status: string }[]; version?: { kubernetes: string }; properties: unknown[] }
}

const within = { deadlineMs: 40_000 }
const gvr = 'clusterprofiles.multicluster.x-k8s.io'

describe('ClusterProfiles in a host', function () {
  this.timeout(120_000)
  const stack = new AsyncDisposableStack()
  const life = new AbortController()
  const { signal } = life
  let host: Cluster

  before(async () => {
    host = stack.use(await startCluster({ name: 'host', nodes: 0, controllerManager: true }))
    const admin = stack.use(httpTransport(await loadKubeconfig({ file: host.kubeconfig }, { trusted: true })))
    await ensureCrds(createClient(admin), { crds: kcpCrds(), signal })
    await host.kubectl(['create', 'namespace', 'kcp-system'])
    // The rights of config/rbac and no others, besides the operator's own.
    await host.kubectl(['apply', '-k', join(repositoryRoot, 'config/rbac')])
    const user = '--user=kcp-operator'
    await host.kubectl(['create', 'clusterrolebinding', 'operator', '--clusterrole=kcp-operator', user])
    const bind = ['create', 'rolebinding', 'profiles', '-n', 'kcp-system', '--role=kcp-cluster-profiles', user]
    await host.kubectl(bind)
    const file = await host.kubeconfigFor({ commonName: 'kcp-operator' })
    const transport = stack.use(httpTransport(await loadKubeconfig({ file }, { trusted: true })))
    stack.use(
      await startOperator({
        clusters: createClient(transport),
        virtual: (basePath) => createClient(transport, { basePath }),
        urls: () => ({ url: 'https://unused.example' }),
        issuer: unused,
        controllers: [clusterProfilesController({ namespace: 'kcp-system', lookAgainSeconds: 1 })],
        log: silentLogger,
        signal,
      }),
    )
    await host.kubectl(['create', '-f', '-'], { input: member('east') })
  })
  after(async () => {
    life.abort()
    await stack.disposeAsync()
  })

  const profile = async (name: string): Promise<Profile | undefined> => {
    const args = ['get', gvr, name, '-n', 'kcp-system', '-o', 'json', '--ignore-not-found']
    const { stdout } = await host.kubectl(args)
    return stdout === '' ? undefined : (JSON.parse(stdout) as Profile)
  }
  const setStatus = (status: object) =>
    host.kubectl([
      ...['patch', 'memberclusters.kcp.dev', 'east', '--subresource=status', '--type=merge'],
      ...['-p', JSON.stringify({ status })],
    ])
  const ready = (status: string) => ({
    ...{ type: 'Ready', status, reason: 'Answers', message: 'said by the test' },
    lastTransitionTime: '2026-01-01T00:00:00Z',
  })
  const untilHealthy = (status: string): Promise<Profile> =>
    waitFor(
      async () => {
        const found = await profile('east')
        const healthy = found?.status?.conditions.find(({ type }) => type === 'ControlPlaneHealthy')
        return healthy?.status === status ? found : undefined
      },
      { what: `ControlPlaneHealthy to be ${status}`, ...within },
    )

  it('come once the host has the CustomResourceDefinition, and follow the member', async () => {
    await setStatus({ id: 'kube-system-uid', version: 'v1.34.3', conditions: [ready('True')] })
    const crd = parse(await readFile(join(import.meta.dirname, 'cluster-profile-crd.yaml'), 'utf8')) as {
      spec: { versions: { name: string }[] }
    }
    // A host with the release of today, which has this version only.
    crd.spec.versions = crd.spec.versions.filter(({ name }) => name === 'v1alpha1')
    await host.kubectl(['create', '-f', '-'], { input: crd })
    const { metadata, spec, status } = await untilHealthy('True')
    expect(spec).to.deep.equal({ displayName: 'east', clusterManager: { name: 'kcp' } })
    expect(metadata.labels).to.include({ 'x-k8s.io/cluster-manager': 'kcp' })
    expect(status?.version).to.deep.equal({ kubernetes: 'v1.34.3' })
    await setStatus({ conditions: [ready('Unknown')] })
    await untilHealthy('Unknown')
  })

  it('are written again when somebody deletes them, and go with their member', async () => {
    const before = await untilHealthy('Unknown')
    await host.kubectl(['delete', gvr, 'east', '-n', 'kcp-system'])
    const again = await untilHealthy('Unknown')
    expect(again.metadata.uid).not.to.equal(before.metadata.uid)
    await host.kubectl(['delete', 'memberclusters.kcp.dev', 'east', '--timeout=30s'])
    await waitFor(async () => (await profile('east')) === undefined, { what: 'the profile to go', ...within })
  })

  it('of another manager stay as they are, whatever the name of a member', async () => {
    const spec = { displayName: 'theirs', clusterManager: { name: 'another' } }
    const apiVersion = 'multicluster.x-k8s.io/v1alpha1'
    const theirs = { apiVersion, kind: 'ClusterProfile', metadata: { name: 'west', namespace: 'kcp-system' }, spec }
    await host.kubectl(['create', '-f', '-'], { input: theirs })
    // Both are reconciled in this order.
    for (const name of ['west', 'north']) await host.kubectl(['create', '-f', '-'], { input: member(name) })
    await waitFor(() => profile('north'), { what: 'the profile of the next member', ...within })
    expect((await profile('west'))?.spec).to.deep.equal(spec)
  })
})

function member(name: string): object {
  return { apiVersion: 'kcp.dev/v1alpha1', kind: 'MemberCluster', metadata: { name } }
}

const unused: CredentialIssuer = {
  servingCa: '',
  issueClientCertificate: () => Promise.reject(new Error('nobody asks for one')),
}
