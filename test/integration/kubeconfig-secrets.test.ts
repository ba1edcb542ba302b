// LogicalCluster.spec.kubeconfigs in a real host: what is written works with the tools' own ways of reading it, is
// renewed in time, and is the only thing that is ever changed or deleted. The operator has the rights of config/rbac
// and no others.
import { expect } from 'chai'
import { createHash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Clock } from '#async/index.ts'
import { createClient, httpTransport, loadKubeconfig } from '#client/index.ts'
import { ensureCrds, startOperator } from '#operator/index.ts'
import { logicalClusterController } from '#operator/logical-cluster/controller.ts'
import { installationKeysName, kcpCrds } from '#crds/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import { createPki, pkiFromSecret, renewedClientCertificate } from '#virtualapi/index.ts'
import {
  freePort,
  kubectl,
  repositoryRoot,
  startCluster,
  startKcp,
  waitFor,
  type Cluster,
} from '#test/support/index.ts'

const day = 24 * 60 * 60_000

interface Secret {
  metadata: { resourceVersion: string; labels?: Record<string, string> }
  type: string
  data: Record<string, string>
}
interface Condition {
  type: string
  status: string
  reason: string
  message: string
}

describe('Secrets with kubeconfigs in a host', function () {
  this.timeout(120_000)
  const stack = new AsyncDisposableStack()
  const life = new AbortController()
  const { signal } = life
  // What is issued now is 25 days old, of 30.
  let now = Date.now() - 25 * day
  const clock: Clock = { now: () => now, monotonic: () => performance.now() }
  let host: Cluster
  let dir: string

  before(async function () {
    this.timeout(300_000)
    dir = await mkdtemp(join(tmpdir(), 'kcp-kubeconfigs-'))
    stack.defer(() => rm(dir, { recursive: true, force: true }))
    host = stack.use(await startCluster({ name: 'host', nodes: 0 }))
    const address = host.hostAddress
    const port = String(await freePort(address))
    const apiserver = await startKcp(
      ['apiserver', '--port', port, '--bind-address', address, '--advertise-address', address],
      { env: { KUBECONFIG: host.kubeconfig } },
    )
    stack.use(apiserver)
    await waitFor(() => apiserver.log().includes('kcp apiserver is ready'), { what: 'the server', deadlineMs: 60_000 })
    await startTestOperator(`https://${address}:${port}`)
    for (const name of ['capi', 'flux', 'argocd']) await host.kubectl(['create', 'namespace', name])
  })
  after(async () => {
    life.abort()
    await stack.disposeAsync()
  })

  /** Our operator with the issuer's clock and with the rights of config/rbac. */
  async function startTestOperator(direct: string): Promise<void> {
    await host.kubectl(['apply', '-k', join(repositoryRoot, 'config/rbac')])
    for (const role of ['kcp-operator', 'kcp-kubeconfig-secrets', 'kcp-kubeconfig-secrets-watch'])
      await host.kubectl([
        'create',
        'clusterrolebinding',
        `test-${role}`,
        `--clusterrole=${role}`,
        '--user=kcp-operator',
      ])
    const keys = await host.kubectl(['get', 'secret', '-n', 'kcp-system', installationKeysName, '-o', 'json'])
    const { data } = JSON.parse(keys.stdout) as Secret
    const pki = createPki(pkiFromSecret(data), { clock })
    const request = {
      commonName: 'kcp:operator',
      organizations: ['kcp:system'],
      realm: 'installation',
      days: 365,
    } as const
    const credentials = renewedClientCertificate(pki, request, { clock })
    const own = await loadKubeconfig(
      { file: await host.kubeconfigFor({ commonName: 'kcp-operator' }) },
      { trusted: true },
    )
    const hostTransport = stack.use(httpTransport(own))
    const clusters = createClient(hostTransport)
    const admin = stack.use(httpTransport(await loadKubeconfig({ file: host.kubeconfig }, { trusted: true })))
    await ensureCrds(createClient(admin), { crds: kcpCrds(), signal })
    const virtual = stack.use(
      httpTransport({
        async endpoint() {
          const { certificate: cert, key } = await credentials()
          return { server: direct, ca: pki.servingCa, cert, key }
        },
      }),
    )
    stack.use(
      await startOperator({
        clusters,
        virtual: (basePath) => createClient(virtual, { basePath }),
        urls: (name) => ({ url: 'https://unused.example', directURL: `${direct}/clusters/${name}` }),
        issuer: pki,
        controllers: [logicalClusterController({ clock })],
        log: silentLogger,
        signal,
      }),
    )
  }

  const apply = (name: string, kubeconfigs: readonly object[]) =>
    host.kubectl(['apply', '-f', '-'], {
      input: { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name }, spec: { kubeconfigs } },
    })
  async function conditionOf(name: string): Promise<Condition | undefined> {
    const { stdout } = await host.kubectl(['get', 'logicalclusters.kcp.dev', name, '-o', 'json'])
    const { status } = JSON.parse(stdout) as { status?: { conditions?: Condition[] } }
    return status?.conditions?.find(({ type }) => type === 'KubeconfigsWritten')
  }
  const untilCondition = (name: string, reason: string): Promise<Condition> =>
    waitFor(
      async () => {
        const condition = await conditionOf(name)
        return condition?.reason === reason ? condition : undefined
      },
      { what: `KubeconfigsWritten of ${name} to have reason ${reason}`, deadlineMs: 40_000 },
    )
  async function secret(namespace: string, name: string): Promise<Secret | undefined> {
    const { stdout } = await host.kubectl(['get', 'secret', '-n', namespace, name, '-o', 'json', '--ignore-not-found'])
    return stdout === '' ? undefined : (JSON.parse(stdout) as Secret)
  }
  const decode = (text: string | undefined): string => Buffer.from(text ?? '', 'base64').toString()
  /** A file with the kubeconfig in a Secret. */
  async function kubeconfigIn(namespace: string, name: string): Promise<string> {
    const text = decode((await secret(namespace, name))?.data['value'])
    const file = join(dir, createHash('sha256').update(text).digest('hex'))
    await writeFile(file, text, { mode: 0o600 })
    return file
  }
  const whoami = async (file: string): Promise<string> =>
    (await kubectl(file, ['auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}'])).stdout

  it('are written for Cluster API, Flux and Argo CD, and work', async () => {
    await apply('acme', [
      { namespace: 'capi', name: 'acme', format: 'ClusterAPI' },
      { namespace: 'flux', name: 'acme', format: 'Flux', subject: { kind: 'User', name: 'flux' } },
      { namespace: 'argocd', name: 'cluster-acme', format: 'ArgoCD' },
    ])
    await untilCondition('acme', 'Written')
    const capi = await kubeconfigIn('capi', 'acme-kubeconfig')
    expect((await secret('capi', 'acme-kubeconfig'))?.type).to.equal('cluster.x-k8s.io/secret')
    expect(await whoami(capi)).to.equal('admin')
    await kubectl(capi, ['create', 'namespace', 'shop'])
    const flux = await kubeconfigIn('flux', 'acme')
    expect(await whoami(flux)).to.equal('flux')
    expect((await kubectl(flux, ['get', 'namespaces'], { expectCode: 'any' })).stderr).to.match(/forbidden/i)
    expect((await secret('flux', 'acme'))?.metadata.labels).to.deep.equal({
      'kcp.dev/kubeconfig': 'true',
      'reconcile.fluxcd.io/watch': 'Enabled',
    })
    const argo = await secret('argocd', 'cluster-acme')
    expect(argo?.metadata.labels).to.include({ 'argocd.argoproj.io/secret-type': 'cluster' })
    const { tlsClientConfig: tls } = JSON.parse(decode(argo?.data['config'])) as {
      tlsClientConfig: Record<'caData' | 'certData' | 'keyData', string>
    }
    const endpoint = {
      server: decode(argo?.data['server']),
      ca: decode(tls.caData),
      cert: decode(tls.certData),
      key: decode(tls.keyData),
    }
    await using transport = httpTransport({ endpoint: () => Promise.resolve(endpoint) })
    const namespaces = { group: '', version: 'v1', resource: 'namespaces' }
    const found = await createClient(transport).get(namespaces, { name: 'shop' }, { signal })
    expect(found.metadata.name).to.equal('shop')
    const events = await host.kubectl(['get', 'events', '-o', 'jsonpath={.items[*].reason}'])
    expect(events.stdout.split(' ').filter((reason) => reason === 'KubeconfigWritten')).to.have.length(3)
  })

  it('are renewed after two thirds of their validity, and not before', async () => {
    const before = await secret('flux', 'acme')
    const reconcile = (value: string) => host.kubectl(['annotate', 'lc', 'acme', `visit=${value}`, '--overwrite'])
    now += 19 * day
    await reconcile('early')
    await host.kubectl(['label', 'secret', '-n', 'argocd', 'cluster-acme', 'argocd.argoproj.io/secret-type-'])
    await reconcile('and now')
    // The label is back: this reconcile has looked at all Secrets.
    const label = 'argocd.argoproj.io/secret-type'
    await waitFor(async () => (await secret('argocd', 'cluster-acme'))?.metadata.labels?.[label] !== undefined, {
      what: 'the label to be put back',
      deadlineMs: 20_000,
    })
    expect((await secret('flux', 'acme'))?.metadata.resourceVersion).to.equal(before?.metadata.resourceVersion)
    now = Date.now()
    await reconcile('late')
    await waitFor(async () => (await secret('flux', 'acme'))?.data['value'] !== before?.data['value'], {
      what: 'the Secret to be renewed',
      deadlineMs: 20_000,
    })
    await untilCondition('acme', 'Written')
    expect(await whoami(await kubeconfigIn('flux', 'acme'))).to.equal('flux')
  })

  it('are written again at once when somebody deletes or changes them', async () => {
    const before = (await secret('flux', 'acme'))?.data['value']
    await host.kubectl(['delete', 'secret', '-n', 'flux', 'acme'])
    await waitFor(() => secret('flux', 'acme'), { what: 'the deleted Secret', deadlineMs: 20_000 })
    const patch = JSON.stringify({ data: { value: Buffer.from('not a kubeconfig').toString('base64') } })
    await host.kubectl(['patch', 'secret', '-n', 'flux', 'acme', '-p', patch])
    await waitFor(async () => decode((await secret('flux', 'acme'))?.data['value']).includes('kind: Config'), {
      what: 'the changed Secret to be a kubeconfig again',
      deadlineMs: 20_000,
    })
    expect((await secret('flux', 'acme'))?.data['value']).not.to.equal(before)
  })

  it('are refused by the host where an entry makes no sense', async () => {
    const subject = { kind: 'ServiceAccount', name: 'deployer' }
    const entry = { namespace: 'flux', name: 'acme', format: 'Flux', subject }
    const input = {
      apiVersion: 'kcp.dev/v1alpha1',
      kind: 'LogicalCluster',
      metadata: { name: 'refused' },
      spec: { kubeconfigs: [entry, { namespace: 'flux', name: 'a'.repeat(243), format: 'ClusterAPI' }] },
    }
    const { stderr } = await host.kubectl(['create', '-f', '-'], { input, expectCode: 1 })
    expect(stderr).to.contain('a ServiceAccount needs a namespace, and a User has none')
    expect(stderr).to.contain('the name has at most 242 characters')
  })

  it('say what to do where they cannot be written, and nothing of others is touched', async () => {
    await host.kubectl(['create', 'secret', 'generic', 'theirs', '-n', 'flux', '--from-literal=value=theirs'])
    const theirs = await secret('flux', 'theirs')
    await apply('acme', [{ namespace: 'flux', name: 'theirs', format: 'Flux' }])
    const { message } = await untilCondition('acme', 'SecretNotOurs')
    expect(message).to.equal(
      'Secret "flux/theirs" exists and was not made for this LogicalCluster; delete it, or choose another name',
    )
    // Those of the former entries are gone.
    for (const [namespace, name] of [
      ['capi', 'acme-kubeconfig'],
      ['flux', 'acme'],
      ['argocd', 'cluster-acme'],
    ] as const)
      expect(await secret(namespace, name)).to.equal(undefined)
    await apply('acme', [{ namespace: 'nowhere', name: 'acme', format: 'Flux' }])
    expect((await untilCondition('acme', 'NamespaceMissing')).message).to.contain('create it, or remove the entry')
    expect(await secret('flux', 'theirs')).to.deep.equal(theirs)
  })

  it('carry the token of a ServiceAccount once it exists', async () => {
    const subject = { kind: 'ServiceAccount', namespace: 'default', name: 'deployer' }
    await apply('acme', [
      { namespace: 'flux', name: 'deployer', format: 'Flux', subject },
      { namespace: 'flux', name: 'admin', format: 'Flux' },
    ])
    await untilCondition('acme', 'ServiceAccountMissing')
    await kubectl(await kubeconfigIn('flux', 'admin'), ['create', 'serviceaccount', 'deployer'])
    await host.kubectl(['annotate', 'lc', 'acme', 'visit=again', '--overwrite'])
    await untilCondition('acme', 'Written')
    expect(await whoami(await kubeconfigIn('flux', 'deployer'))).to.equal('system:serviceaccount:default:deployer')
  })

  it('are deleted with the LogicalCluster', async () => {
    await host.kubectl(['delete', 'lc', 'acme', '--timeout=30s'])
    expect(await secret('flux', 'deployer')).to.equal(undefined)
    expect(await secret('flux', 'admin')).to.equal(undefined)
    expect(await secret('flux', 'theirs')).not.to.equal(undefined)
  })

  it('need a role that the installation may withhold', async () => {
    await host.kubectl(['delete', 'clusterrolebinding', 'test-kcp-kubeconfig-secrets'])
    await apply('bare', [{ namespace: 'flux', name: 'bare', format: 'Flux' }])
    const { message } = await untilCondition('bare', 'Forbidden')
    expect(message).to.contain('bind ClusterRole kcp-kubeconfig-secrets to the operator in namespace "flux"')
    const bind = ['create', 'rolebinding', 'kubeconfigs', '-n', 'flux', '--clusterrole=kcp-kubeconfig-secrets']
    await host.kubectl([...bind, '--user=kcp-operator'])
    await host.kubectl(['annotate', 'lc', 'bare', 'visit=again', '--overwrite'])
    await untilCondition('bare', 'Written')
    await host.kubectl(['delete', 'lc', 'bare', '--timeout=30s'])
  })
})
