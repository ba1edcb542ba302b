// The command `kubectl kcp bind` of the CNCF project kcp against our logical clusters.
import { expect } from 'chai'
import { ensurePrograms, kubectlEnvironment, runCommand, waitFor, type CommandResult } from '#test/support/index.ts'
import { startInstance, type KcpInstance, type Tenant } from '#test/integration/kcp-instance.ts'

const within = { deadlineMs: 60_000, intervalMs: 200 }
const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget' },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
  },
}
const apiExport = {
  apiVersion: 'apis.kcp.io/v1alpha2',
  kind: 'APIExport',
  metadata: { name: 'widgets' },
  spec: {
    resources: [{ name: 'widgets', group: 'example.com', crd: 'widgets.example.com' }],
    permissionClaims: [
      { group: '', resource: 'configmaps', verbs: ['*'] },
      { group: '', resource: 'secrets', verbs: ['get'] },
    ],
  },
}

describe('kubectl kcp bind', function () {
  this.timeout(30 * 60_000) // the first build compiles everything
  const stack = new AsyncDisposableStack()
  let program: string
  let kcp: KcpInstance
  let consumer: Tenant

  before(async () => {
    program = (await ensurePrograms(['kubectl-kcp']))['kubectl-kcp']
    kcp = stack.use(await startInstance())
    const provider = await kcp.tenant('provider')
    consumer = await kcp.tenant('consumer')
    await provider.kubectl(['create', '-f', '-'], { input: definition })
    await provider.kubectl(['create', '-f', '-'], { input: apiExport })
    // kubectl create clusterrole knows the verb bind only for roles.
    const rules = [{ apiGroups: ['apis.kcp.io'], resources: ['apiexports'], verbs: ['bind'] }]
    const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'bind' }, rules }
    await provider.kubectl(['create', '-f', '-'], { input: role })
    const group = ['--clusterrole=bind', '--group=system:authenticated']
    await provider.kubectl(['create', 'clusterrolebinding', 'bind', ...group])
  })
  after(() => stack.disposeAsync())

  const bind = (...args: string[]): Promise<CommandResult> =>
    runCommand(program, ['apiexport', ...args], {
      env: { ...kubectlEnvironment(consumer.kubeconfig), KUBECONFIG: consumer.kubeconfig },
      timeoutMs: 60_000,
      expectCode: 'any',
    })

  it('makes a binding, waits until it is bound, and answers the claims', async () => {
    const { code, stdout, stderr } = await bind(
      ...['provider:widgets', '--name', 'shared'],
      ...['--accept-permission-claim', 'configmaps.core', '--reject-permission-claim', 'secrets.core'],
    )
    expect(code, stderr).to.equal(0)
    expect(stdout).to.match(/shared.*(created|bound)/is)
    const { stdout: json } = await consumer.kubectl(['get', 'apibindings', 'shared', '-o', 'json'])
    const { spec, status } = JSON.parse(json) as {
      spec: { permissionClaims: { resource: string; state: string }[] }
      status: { phase: string }
    }
    expect(status.phase).to.equal('Bound')
    const states = spec.permissionClaims.map(({ resource, state }) => [resource, state])
    expect(Object.fromEntries(states)).to.deep.equal({ configmaps: 'Accepted', secrets: 'Rejected' })
    await waitFor(async () => (await consumer.kubectl(['get', 'widgets'], { expectCode: 'any' })).code === 0, {
      what: 'the bound API',
      ...within,
    })
  })

  it('says why an export cannot be bound', async () => {
    const { code, stderr, stdout } = await bind('provider:none', '--timeout', '3s')
    expect(code, stdout).not.to.equal(0)
    expect(stderr).to.match(/permission|not exist|timed out|deadline/i)
  })
})
