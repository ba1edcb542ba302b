// GitOps on a real host, as docs/gitops.md tells it: LogicalClusters, MemberClusters and Placements come from a
// directory, and an application is deployed into each logical cluster through the Secret of its spec.kubeconfigs; with
// Flux, then with the engine of Argo CD.
import { expect } from 'chai'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { startArtifactServer, type ArtifactServer } from '#test/clients/controllers/artifact-server.ts'
import {
  applyAll,
  read,
  readyOf,
  tryRead,
  untilGone,
  untilObject,
  type ClusterAccess,
  type Seen,
} from '#test/clients/controllers/cluster-access.ts'
import {
  announce,
  applyKustomization,
  fluxNamespace,
  installFlux,
  reconcileNow,
  startKustomizeController,
  untilApplied,
} from '#test/clients/controllers/flux.ts'
import { createGitRepository } from '#test/clients/controllers/git-repository.ts'
import { startGitopsAgent } from '#test/clients/controllers/gitops-agent.ts'
import { expectNoUnexplainedErrors } from '#test/clients/controllers/logged-errors.ts'
import { installOnHost } from '#test/e2e/installation.ts'
import { kubectl, startCluster, type Cluster, type ManagedProcess } from '#test/support/index.ts'

const count = 50
const all = Array.from({ length: count }, (_, index) => index)
type Files = Readonly<Record<string, string>>

describe('GitOps on a host', function () {
  const stack = new AsyncDisposableStack()
  let dir: string
  let host: Cluster
  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'kcp-gitops-host-'))
    stack.defer(() => rmSync(dir, { recursive: true, force: true }))
    host = stack.use(await startCluster({ name: 'host', controllerManager: true }))
    const member = stack.use(await startCluster({ name: 'east', controllerManager: true }))
    const installation = stack.use(await installOnHost({ host }))
    await installation.join(member)
    const namespaces = [fluxNamespace, 'argocd'].map((name) => ({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name },
    }))
    await applyAll(host, namespaces)
  })
  after(() => stack.disposeAsync())

  /** The logical cluster as the tool sees it: through the kubeconfig in its Secret. */
  async function tenant(name: string, secret: string, namespace: string): Promise<ClusterAccess> {
    const { data } = (await read(host, [`secrets/${secret}`, namespace])) as Seen & { data: Record<string, string> }
    const file = join(dir, `${namespace}-${name}.kubeconfig`)
    writeFileSync(file, kubeconfigOf(data), { mode: 0o600 })
    return { name, kubeconfig: file, kubectl: (args, options) => kubectl(file, args, options) }
  }

  describe('by kustomize-controller', () => {
    let artifacts: ArtifactServer
    let controller: ManagedProcess
    const publish = async (name: string, files: Files) => {
      const artifact = await artifacts.publish(name, files)
      await announce(host, artifact)
      return artifact
    }
    before(async () => {
      artifacts = stack.use(await startArtifactServer())
      await installFlux(host)
      controller = stack.use(await startKustomizeController(host))
    })

    it(`creates ${count} LogicalClusters, a MemberCluster and a Placement, and waits for them`, async () => {
      const artifact = await publish('one', fluxFiles(all, all))
      await applyKustomization(host, 'clusters', { path: './clusters', wait: true })
      const seen = await untilApplied(host, 'clusters', artifact)
      expect((seen.status?.['inventory'] as { entries: unknown[] }).entries).to.have.length(count + 2)
      for (const index of all)
        expect(readyOf(await read(host, [`logicalclusters/t-${index}`]))?.status).to.equal('True')
      expect((await read(host, ['memberclusters/east'])).metadata.labels).to.include({ region: 'eu' })
      await read(host, ['placements/everything'])
    })

    it('deploys an application into each, through its kubeconfig Secret', async () => {
      await applyKustomization(host, 'apps', { path: './apps', wait: true, dependsOn: [{ name: 'clusters' }] })
      await untilObject(host, ['kustomizations/apps', fluxNamespace], (seen) => readyOf(seen)?.status === 'True')
      for (const index of all) {
        const { data } = (await read(await tenant(`t-${index}`, `t-${index}`, fluxNamespace), [
          'configmaps/app',
          'default',
        ])) as Seen & { data: unknown }
        expect(data).to.deep.equal({ from: 'git' })
      }
      await untilObject(await tenant('t-0', 't-0', fluxNamespace), ['deployments/web', 'default'], ({ metadata }) =>
        Boolean(metadata.annotations?.['kcp.dev/placed-on']?.includes('east')),
      )
    })

    it('corrects drift in the host and in the logical clusters', async () => {
      await host.kubectl(['label', 'lc/t-1', 'tier=gold', '--overwrite'])
      await host.kubectl(['delete', 'placement/everything'])
      await reconcileNow(host, 'clusters')
      expect((await read(host, ['logicalclusters/t-1'])).metadata.labels?.['tier']).to.equal('silver')
      await read(host, ['placements/everything'])
      const one = await tenant('t-1', 't-1', fluxNamespace)
      await one.kubectl(['delete', 'cm/app'])
      await reconcileNow(host, 'app-1')
      await read(one, ['configmaps/app', 'default'])
    })

    it('prunes an application, then its LogicalCluster and its Secret', async () => {
      const kept = all.slice(0, -1)
      const last = await tenant(`t-${count - 1}`, `t-${count - 1}`, fluxNamespace)
      await publish('two', fluxFiles(all, kept))
      await untilGone(host, [`kustomizations/app-${count - 1}`, fluxNamespace])
      expect(await tryRead(last, ['configmaps/app', 'default'])).to.equal(undefined)
      await publish('three', fluxFiles(kept, kept))
      await untilGone(host, [`logicalclusters/t-${count - 1}`])
      await untilGone(host, [`secrets/t-${count - 1}`, fluxNamespace])
      await read(host, ['logicalclusters/t-0'])
    })

    it('deletes everything with its two Kustomizations, and logs no error', async () => {
      for (const name of ['apps', 'clusters']) {
        await host.kubectl(['-n', fluxNamespace, 'delete', `kustomization/${name}`, '--timeout=300s'], {
          timeoutMs: 310_000,
        })
        // The Kustomizations of the applications end after the one that made them.
        if (name === 'apps')
          for (const index of all) await untilGone(host, [`kustomizations/app-${index}`, fluxNamespace])
      }
      for (const index of all) await untilGone(host, [`logicalclusters/t-${index}`])
      await untilGone(host, ['placements/everything'])
      await untilGone(host, ['memberclusters/east'])
      expectNoUnexplainedErrors(controller.log(), [], host.name)
    })
  })

  it(`by Argo CD's engine: ${count} LogicalClusters and one application into each`, async () => {
    const clusters = await createGitRepository(join(dir, 'clusters'))
    await clusters.commit(argoFiles(all))
    await using agent = await startGitopsAgent(host, clusters.dir)
    for (const index of all)
      await untilObject(host, [`logicalclusters/a-${index}`], (seen) => readyOf(seen)?.status === 'True')
    const apps = await createGitRepository(join(dir, 'app'))
    await apps.commit({ 'app.yaml': application })
    const deploy = async (index: number): Promise<void> => {
      const target = await tenant(`a-${index}`, `cluster-a-${index}`, 'argocd')
      await using inside = await startGitopsAgent(target, apps.dir)
      await read(target, ['configmaps/app', 'default'])
      await target.kubectl(['patch', 'cm/app', '--type=merge', '-p', '{"data":{"from":"hand"}}'])
      await inside.sync()
      const { data } = (await read(target, ['configmaps/app', 'default'])) as Seen & { data: unknown }
      expect(data).to.deep.equal({ from: 'git' })
      expectNoUnexplainedErrors(inside.process.log(), [], target.name)
    }
    for (let first = 0; first < count; first += 10) await Promise.all(all.slice(first, first + 10).map(deploy))
    await host.kubectl(['label', 'lc/a-1', 'tier=gold', '--overwrite'])
    await agent.sync()
    expect((await read(host, ['logicalclusters/a-1'])).metadata.labels?.['tier']).to.equal('silver')
    await clusters.commit({})
    await agent.sync()
    for (const index of all) await untilGone(host, [`logicalclusters/a-${index}`])
    expect(await tryRead(host, ['secrets/cluster-a-0', 'argocd'])).to.equal(undefined)
    expectNoUnexplainedErrors(agent.process.log(), [], host.name)
  })
})

const texts = (objects: readonly object[]): string => objects.map((one) => stringify(one)).join('---\n')

const kcp = (kind: string, name: string, spec: object, labels: object = {}) => ({
  ...{ apiVersion: 'kcp.dev/v1alpha1', kind, metadata: { name, labels } },
  spec,
})
const application = texts([
  { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'app', namespace: 'default' }, data: { from: 'git' } },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web', namespace: 'default' },
    spec: { selector: { app: 'web' }, ports: [{ port: 80 }] },
  },
  {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'default' },
    spec: {
      selector: { matchLabels: { app: 'web' } },
      template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'web', image: 'nginx:1' }] } },
    },
  },
])

/** The repository of Flux: clusters, one Kustomization per application, the application. */
function fluxFiles(clusters: readonly number[], apps: readonly number[]): Files {
  const east = {
    connection: { kubeconfigSecretRef: { namespace: 'kcp-system', name: 'member-east', key: 'kubeconfig' } },
  }
  const kustomization = (index: number) => ({
    apiVersion: 'kustomize.toolkit.fluxcd.io/v1',
    kind: 'Kustomization',
    metadata: { name: `app-${index}`, namespace: fluxNamespace },
    spec: {
      ...{ interval: '1h', retryInterval: '5s', prune: true, path: './app' },
      sourceRef: { kind: 'GitRepository', name: 'apps' },
      kubeConfig: { secretRef: { name: `t-${index}` } },
    },
  })
  const secret = (index: number) => ({ namespace: fluxNamespace, name: `t-${index}`, format: 'Flux' })
  return {
    'clusters/tenants.yaml': texts(
      clusters.map((index) =>
        kcp('LogicalCluster', `t-${index}`, { kubeconfigs: [secret(index)] }, { tier: 'silver' }),
      ),
    ),
    'clusters/fleet.yaml': texts([
      kcp('MemberCluster', 'east', east, { region: 'eu' }),
      kcp('Placement', 'everything', { clusters: ['east'] }),
    ]),
    'apps/kustomizations.yaml': texts(apps.map(kustomization)),
    'app/app.yaml': application,
  }
}

function argoFiles(clusters: readonly number[]): Files {
  const secret = (index: number) => ({ namespace: 'argocd', name: `cluster-a-${index}`, format: 'ArgoCD' })
  const one = (index: number) =>
    kcp('LogicalCluster', `a-${index}`, { kubeconfigs: [secret(index)] }, { tier: 'silver' })
  return { 'tenants.yaml': texts(clusters.map(one)) }
}

/** A kubeconfig from a Secret of format Flux, or from one of format ArgoCD as Argo CD reads it. */
function kubeconfigOf(data: Readonly<Record<string, string>>): string {
  const text = (key: string): string => Buffer.from(data[key] ?? '', 'base64').toString()
  if (data['value'] !== undefined) return text('value')
  const { tlsClientConfig: tls } = JSON.parse(text('config')) as {
    tlsClientConfig: { caData: string; certData: string; keyData: string }
  }
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'it',
    contexts: [{ name: 'it', context: { cluster: 'it', user: 'it' } }],
    clusters: [{ name: 'it', cluster: { server: text('server'), 'certificate-authority-data': tls.caData } }],
    users: [{ name: 'it', user: { 'client-certificate-data': tls.certData, 'client-key-data': tls.keyData } }],
  })
}
