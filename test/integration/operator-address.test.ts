// kcp operator finds kcp apiserver by the address published in the host, also when that is stale at first or changes.
import { after, before, describe, it } from 'mocha'
import { freePort, startCluster, startKcp, waitFor, type Cluster, type ManagedProcess } from '#test/support/index.ts'

describe('the operator of an apiserver that changes its address', function () {
  this.timeout(120_000)
  let host: Cluster
  const running: ManagedProcess[] = []
  before(async () => {
    host = await startCluster({ name: 'host', nodes: 0 })
  })
  after(async () => {
    for (const process of running.reverse()) await process.stop()
    await host.stop()
  })

  async function start(command: 'apiserver' | 'operator'): Promise<ManagedProcess> {
    const address = host.hostAddress
    const where = ['--port', String(await freePort(address)), '--bind-address', address, '--advertise-address', address]
    const args = command === 'apiserver' ? [command, ...where] : [command]
    const process = await startKcp(args, { env: { KUBECONFIG: host.kubeconfig } })
    running.push(process)
    return process
  }
  const said = (process: ManagedProcess, text: string) =>
    waitFor(() => process.log().includes(text), { what: `"${text}" in the log`, deadlineMs: 40_000 })
  const created = async (name: string): Promise<void> => {
    const input = { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name } }
    await host.kubectl(['create', '-f', '-'], { input })
    await host.kubectl(['wait', '--for=condition=Ready', `logicalclusters.kcp.dev/${name}`, '--timeout=30s'])
  }

  it('starts with a stale address, follows two changes, and another one after a restart of the host', async () => {
    const first = await start('apiserver')
    await said(first, 'kcp apiserver is ready')
    await first.stop()
    const operator = await start('operator')
    await said(operator, 'could not GET')
    const second = await start('apiserver')
    await said(operator, 'kcp operator is ready')
    await created('one')
    await second.stop()
    await start('apiserver')
    await waitFor(() => operator.log().split('has another address').length === 3, {
      what: 'the operator to follow once more',
      deadlineMs: 40_000,
    })
    await created('two')
    await host.kubectl(['delete', 'logicalclusters.kcp.dev', 'one', 'two', '--timeout=30s'])
    // A restart of the host ends the watch on the published address.
    const server = host.processes.get('kube-apiserver')
    await server?.kill()
    await said(operator, 'the address of kcp apiserver cannot be read')
    await server?.start()
    await created('three')
    await host.kubectl(['delete', 'logicalclusters.kcp.dev', 'three', '--timeout=30s'])
  })
})
