// `kcp diagnose` of `kcp start` and of an installation in a real host, with the rights of its role in config/rbac.
import { expect } from 'chai'
import { join } from 'node:path'
import { freePort, repositoryRoot, runKcp, startCluster, startKcp, waitFor, type Cluster } from '#test/support/index.ts'
import { startInstance } from './kcp-instance.ts'

describe('kcp diagnose', function () {
  this.timeout(120_000)

  it('says of kcp start what is wrong and what to do', async () => {
    await using kcp = await startInstance()
    const diagnose = (code: number) => runKcp(['diagnose', '--root-dir', kcp.rootDir], { expectCode: code })
    await kcp.tenant('acme')
    const well = await diagnose(0)
    expect(well.stdout).to.contain('ok    LogicalClusters: 1, all well').and.not.to.contain('WRONG')
    const connection = { kubeconfigSecretRef: { namespace: 'default', name: 'none', key: 'kubeconfig' } }
    const member = {
      apiVersion: 'kcp.dev/v1alpha1',
      kind: 'MemberCluster',
      metadata: { name: 'away' },
      spec: { connection },
    }
    await kcp.admin.kubectl(['create', '-f', '-'], { input: member })
    const has = ['get', 'mc', 'away', '-o', 'jsonpath={.status.conditions}']
    await waitFor(async () => (await kcp.admin.kubectl(has)).stdout !== '', {
      what: 'the operator to look at the member',
      deadlineMs: 20_000,
    })
    const ill = await diagnose(1)
    expect(ill.stdout).to.match(/WRONG MemberCluster "away": Ready=Unknown .*\n {6}-> .*kcp member join/)
    expect(ill.stderr).to.match(/^kcp: 1 of 4 checks found something wrong/)
    await kcp.process.stop()
    expect((await diagnose(1)).stdout).to.contain(`start it: kcp start --root-dir ${kcp.rootDir}`)
  })

  it('says of a host what is wrong and what to do', async function () {
    this.timeout(300_000)
    await using stack = new AsyncDisposableStack()
    const host: Cluster = stack.use(await startCluster({ name: 'host', nodes: 0 }))
    const own = await host.kubeconfigFor({ commonName: 'diagnose' })
    const diagnose = async (code: number): Promise<string> =>
      (await runKcp(['diagnose', '--kubeconfig', own], { expectCode: code })).stdout
    const nothing = await diagnose(1)
    expect(nothing).to.match(/^ok {4}the host answers: Kubernetes v1\./)
    const address = host.hostAddress
    const where = ['--port', String(await freePort(address)), '--bind-address', address, '--advertise-address', address]
    const env = { KUBECONFIG: host.kubeconfig }
    const apiserver = stack.use(await startKcp(['apiserver', ...where], { env }))
    const operator = stack.use(await startKcp(['operator'], { env }))
    await waitFor(() => operator.log().includes('kcp operator is ready'), { what: 'the operator', deadlineMs: 90_000 })
    await host.kubectl(['apply', '-k', join(repositoryRoot, 'config/rbac')])
    const bind = (kind: string, role: string, ...more: string[]) =>
      host.kubectl(['create', kind, 'diagnose', `--${role}=kcp-diagnose`, '--user=diagnose', ...more])
    await bind('clusterrolebinding', 'clusterrole')
    await bind('rolebinding', 'role', '-n', 'kcp-system')
    await host.kubectl(['wait', '--for=condition=Available', 'apiservice/v1alpha1.virtual.kcp.dev', '--timeout=60s'])
    const well = await diagnose(0)
    expect(well.split('\n').filter((line) => line.startsWith('ok'))).to.have.length(8)
    await operator.stop()
    await apiserver.stop()
    const stopped = await diagnose(1)
    expect(stopped).to.contain('WRONG no kcp operator is the leader\n      -> start kcp operator')
    expect(stopped).to.match(/WRONG the direct listener https:\S+ does not answer from here/)
    await host.processes.get('kube-apiserver')?.kill()
    expect(await diagnose(1)).to.match(/^WRONG the host does not answer: .*\n {6}-> check --kubeconfig/)
  })
})
