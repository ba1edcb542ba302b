// The chart on a real API server without nodes: what an upgrade does with the Secrets of our processes, and what their
// tokens may do.
import { expect } from 'chai'
import { join } from 'node:path'
import { installationKeys } from '#cli/roles/host-installation.ts'
import { createClient, httpTransport, loadKubeconfig } from '#client/index.ts'
import { ensurePrograms, kubectl, repositoryRoot, runCommand, startCluster, type Cluster } from '#test/support/index.ts'

const namespace = 'kcp-system'
const names = ['kcp-keys', 'kcp-serving-certificates', 'kcp-replica-authority']

describe('the chart in a host', function () {
  this.timeout(120_000)
  const stack = new AsyncDisposableStack()
  let host: Cluster
  let helm: (...args: readonly string[]) => Promise<unknown>

  before(async function () {
    this.timeout(300_000)
    host = stack.use(await startCluster({ name: 'upgraded' }))
    const program = (await ensurePrograms(['helm'])).helm
    helm = (...args) => runCommand(program, args, { env: { KUBECONFIG: host.kubeconfig } })
  })
  after(() => stack.disposeAsync())

  const chart = join(repositoryRoot, 'charts/kcp')
  const secret = async (name: string): Promise<{ data?: Record<string, string>; metadata: { uid: string } }> =>
    JSON.parse((await host.kubectl(['get', 'secret', name, '-n', namespace, '-o', 'json'])).stdout) as never
  const fill = (name: string): Promise<unknown> =>
    host.kubectl([
      'patch',
      'secret',
      name,
      '-n',
      namespace,
      '--type=merge',
      '-p',
      JSON.stringify({ data: { key: 'eA==' } }),
    ])

  it('leaves the Secrets that processes of an earlier release made as they are', async () => {
    await host.kubectl(['create', 'namespace', namespace])
    const before = new Map<string, string>()
    for (const name of names) {
      await host.kubectl(['create', 'secret', 'generic', name, '-n', namespace, '--from-literal=key=x'])
      before.set(name, (await secret(name)).metadata.uid)
    }
    // A release into this namespace does not contain it.
    await helm('install', 'kcp', chart, '-n', namespace)
    await helm('upgrade', 'kcp', chart, '-n', namespace)
    await helm('uninstall', 'kcp', '-n', namespace, '--no-hooks')
    for (const [name, uid] of before) {
      const { data, metadata } = await secret(name)
      expect([data, metadata.uid]).to.deep.equal([{ key: 'eA==' }, uid])
    }
  })

  it('makes them where there are none, and keeps what processes have filled in', async () => {
    for (const name of names) await host.kubectl(['delete', 'secret', name, '-n', namespace])
    await helm('install', 'kcp', chart, '-n', namespace)
    for (const name of names) expect((await secret(name)).data).to.equal(undefined)
    for (const name of names) await fill(name)
    await helm('upgrade', 'kcp', chart, '-n', namespace, '--set', 'monitoring.serviceMonitor.enabled=false')
    await helm('uninstall', 'kcp', '-n', namespace, '--no-hooks')
    await helm('install', 'kcp', chart, '-n', namespace)
    for (const name of names) expect((await secret(name)).data).to.deep.equal({ key: 'eA==' })
  })

  /** A kubeconfig with a token of one of our processes. */
  const tokenOf = async (account: string): Promise<string> => {
    const { stdout } = await host.kubectl(['create', 'token', account, '-n', namespace])
    const file = await host.kubeconfigFor({ commonName: `unused-${account}` })
    await kubectl(file, ['config', 'set-credentials', 'stolen', `--token=${stdout.trim()}`])
    await kubectl(file, ['config', 'set-context', '--current', '--user=stolen'])
    return file
  }

  it('lets kcp-apiserver fill the Secret of the keys, for which kcp-operator waits', async () => {
    const signal = AbortSignal.timeout(60_000)
    const patch = ['patch', 'secret', 'kcp-keys', '-n', namespace, '--type=merge', '-p', '{"data":null}']
    await host.kubectl(patch)
    const keysFor = async (account: string): Promise<Uint8Array> => {
      const kubeconfig = await loadKubeconfig({ file: await tokenOf(account) }, { trusted: true })
      const transport = stack.use(httpTransport(kubeconfig))
      return (await installationKeys(createClient(transport), signal)).sealKey
    }
    // The operator may make its own Secrets where kubeconfigs are switched on, and still waits.
    const waiting = keysFor('kcp-operator')
    const keys = await keysFor('kcp-apiserver')
    expect(Buffer.from(await waiting).equals(keys)).to.equal(true)
  })

  it('gives the token of kcp-apiserver no way to become kcp-operator', async () => {
    const file = await tokenOf('kcp-apiserver')
    const token = {
      ...{ apiVersion: 'v1', kind: 'Secret', type: 'kubernetes.io/service-account-token' },
      metadata: { name: 'forged', namespace, annotations: { 'kubernetes.io/service-account.name': 'kcp-operator' } },
    }
    const attempts: readonly { args: readonly string[]; input?: object }[] = [
      { args: ['create', '-f', '-'], input: token },
      {
        args: ['apply', '--server-side', '-f', '-'],
        input: { ...token, metadata: { ...token.metadata, name: 'kcp-keys-2' } },
      },
      { args: ['create', 'token', 'kcp-operator', '-n', namespace] },
      { args: ['create', 'rolebinding', 'x', '-n', namespace, '--clusterrole=cluster-admin', '--user=x'] },
      { args: ['get', 'secrets', '-n', 'kube-system'] },
      { args: ['run', 'x', '-n', namespace, '--image=x'] },
      { args: ['get', 'pods', '-n', namespace, '--as=system:serviceaccount:kcp-system:kcp-operator'] },
    ]
    for (const { args, input } of attempts) {
      const { code, stderr } = await kubectl(file, args, { ...(input && { input }), expectCode: 'any' })
      expect([code, stderr.includes('orbidden')], args.join(' ')).to.deep.equal([1, true])
    }
    // What it needs.
    await kubectl(file, ['get', 'secret', 'kcp-keys', '-n', namespace])
    const keys = JSON.parse(
      (await host.kubectl(['get', 'secret', 'kcp-keys', '-n', namespace, '-o', 'json'])).stdout,
    ) as object
    await kubectl(file, ['replace', '-f', '-'], { input: keys })
  })
})
