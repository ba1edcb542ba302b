// A member that offers a custom resource of its own to logical clusters: kcp start with a real API server as member.
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { runKcp, startCluster, waitFor, type Cluster } from '#test/support/index.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

const within = { deadlineMs: 60_000, intervalMs: 100 }
const crd = 'widgets.example.com'

const definition = (properties: object) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: crd },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'widgets', kind: 'Widget' },
    versions: [
      {
        ...{ name: 'v1', served: true, storage: true, subresources: { status: {} } },
        schema: { openAPIV3Schema: { type: 'object', properties } },
      },
    ],
  },
})
const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
const widget = (size: number, name = 'w') => ({
  apiVersion: 'example.com/v1',
  kind: 'Widget',
  metadata: { name, namespace: 'default', annotations: { 'tenant.example/secret': 'x', team: 'blue' } },
  spec: { size },
})

describe('an API that a member exports', function () {
  this.timeout(120_000)
  const stack = new AsyncDisposableStack()
  let kcp: KcpInstance
  let acme: Tenant
  let bob: Tenant
  let carl: Tenant
  let east: Cluster
  const space: Record<string, string> = {}

  const apply = (to: Pick<Cluster, 'kubectl'> | Tenant, object: object) =>
    to.kubectl(['apply', '-f', '-'], { input: object })
  const read = async (from: Pick<Cluster, 'kubectl'> | Tenant, ...what: string[]): Promise<KubeObject | undefined> => {
    const { stdout } = await from.kubectl(['get', ...what, '--ignore-not-found', '-o', 'json'], { expectCode: 'any' })
    return stdout.trim() === '' ? undefined : (JSON.parse(stdout) as KubeObject)
  }
  const copy = (name = 'w', of = 'acme') => read(east, 'widgets', name, '-n', space[of]!)
  const until = <T>(what: string, attempt: () => Promise<T | undefined | false>): Promise<T> =>
    waitFor(async () => (await attempt()) || undefined, { what, ...within })
  const told = async (): Promise<string> => {
    const object = await read(kcp.admin, 'mc', 'east')
    const { conditions = [] } = (object?.['status'] ?? {}) as { conditions?: Record<string, string>[] }
    const found = conditions.find(({ type }) => type === 'APIsExported')
    return found === undefined ? '' : `${found['status']} ${found['reason']}: ${found['message']}`
  }

  before(async function () {
    this.timeout(300_000)
    kcp = stack.use(await startInstance())
    acme = await kcp.tenant('acme')
    bob = await kcp.tenant('bob')
    carl = await kcp.tenant('carl')
    await kcp.admin.kubectl(['label', 'lc', 'acme', 'carl', 'use=east'])
    for (const { name } of [acme, bob, carl]) {
      const { stdout } = await kcp.admin.kubectl(['get', 'lc', name, '-o', 'jsonpath={.status.id}'])
      space[name] = `${stdout}-default`
    }
    await apply(carl, definition({ spec: open }))
    await carl.kubectl(['wait', '--for=condition=Established', `crd/${crd}`])
    await apply(carl, widget(1))
    east = stack.use(await startCluster({ name: 'east', controllerManager: true }))
    await apply(east, definition({ spec: { type: 'object', properties: { size: { type: 'integer' } } }, status: open }))
    const member = ['member', 'join', 'east', '--kubeconfig', east.kubeconfig, '--root-dir', kcp.rootDir]
    await runKcp([...member, '--export', crd])
    const selector = { spec: { logicalClusterSelector: { matchLabels: { use: 'east' } } } }
    await kcp.admin.kubectl(['patch', 'mc/east', '--type=merge', '-p', JSON.stringify(selector)])
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  it('is served in a logical cluster that may use the member, and says where it comes from', async () => {
    await until('the definition', () => read(acme, 'crd', crd))
    await acme.kubectl(['wait', '--for=condition=Established', `crd/${crd}`, '--timeout=30s'])
    expect((await read(acme, 'crd', crd))?.metadata.labels).to.deep.equal({ 'kcp.dev/exported-from': 'east' })
    const { stderr } = await acme.kubectl(['apply', '-f', '-'], {
      input: { ...widget(1), spec: { size: 'large' } },
      expectCode: 1,
    })
    expect(stderr).to.include('spec.size')
  })

  it('has its objects copied into the member and their status back, in generations of the tenant', async () => {
    await apply(acme, widget(3))
    const made = await until('the copy', () => copy())
    expect(made['spec']).to.deep.equal({ size: 3 })
    expect(made.metadata.annotations).to.include({ team: 'blue' }).and.not.have.property('tenant.example/secret')
    await acme.kubectl(['patch', 'widget/w', '--type=merge', '-p', '{"spec":{"size":4}}'])
    await until('the change', async () => ((await copy())?.['spec'] as { size?: number }).size === 4)
    const generation = (await copy())?.metadata.generation
    const status = JSON.stringify({ status: { observedGeneration: generation, phase: 'Turning' } })
    await east.kubectl([
      'patch',
      'widget/w',
      '-n',
      space['acme']!,
      '--subresource=status',
      '--type=merge',
      '-p',
      status,
    ])
    const object = await until('the status', async () => {
      const found = await read(acme, 'widget', 'w')
      return found?.['status'] !== undefined && found
    })
    expect(object['status']).to.deep.equal({ observedGeneration: object.metadata.generation, phase: 'Turning' })
  })

  it('is not seen by a tenant who may not use the member, and does not replace a definition of another', async () => {
    expect(await read(bob, 'crd', crd)).to.equal(undefined)
    await until('the reason', async () => (await told()).includes('carl'))
    expect(await told()).to.equal(
      `False Incomplete: logical cluster "carl" has a CustomResourceDefinition ${crd} of its own`,
    )
    expect((await read(carl, 'crd', crd))?.metadata.labels ?? {}).to.deep.equal({})
    expect(await copy('w', 'carl')).to.equal(undefined)
    await carl.kubectl(['label', 'crd', crd, 'kcp.dev/exported-from=east'])
    expect((await read(carl, 'crd', crd))?.metadata.labels ?? {}).to.deep.equal({})
  })

  it('deletes the copy with the object, and the namespace in the member with the last copy', async () => {
    await apply(acme, widget(5, 'second'))
    await until('the second copy', () => copy('second'))
    await acme.kubectl(['delete', 'widget', 'second'])
    await until('its end', async () => (await copy('second')) === undefined)
    expect(await copy()).to.not.equal(undefined)
    await acme.kubectl(['delete', 'widget', 'w'])
    await until('no namespace', async () => (await read(east, 'namespace', space['acme']!)) === undefined)
  })

  it('says on the object why the member refuses it', async () => {
    await apply(acme, widget(50, 'large'))
    await until('the copy', () => copy('large'))
    const rules = {
      apiGroups: ['example.com'],
      apiVersions: ['*'],
      operations: ['CREATE', 'UPDATE'],
      resources: ['widgets'],
    }
    const policy = {
      ...{ apiVersion: 'admissionregistration.k8s.io/v1', kind: 'ValidatingAdmissionPolicy' },
      metadata: { name: 'small-widgets' },
      spec: {
        matchConstraints: { resourceRules: [rules] },
        validations: [{ expression: 'object.spec.size < 60', message: 'too large for this member' }],
      },
    }
    await apply(east, policy)
    await apply(east, {
      ...{ ...policy, kind: 'ValidatingAdmissionPolicyBinding' },
      spec: { policyName: 'small-widgets', validationActions: ['Deny'] },
    })
    await until('the refusal', async () => {
      const { code } = await east.kubectl(
        [
          'patch',
          'widget/large',
          '-n',
          space['acme']!,
          '--type=merge',
          '-p',
          '{"spec":{"size":60}}',
          '--dry-run=server',
        ],
        { expectCode: 'any' },
      )
      return code !== 0
    })
    await acme.kubectl(['patch', 'widget/large', '--type=merge', '-p', '{"spec":{"size":70}}'])
    const events = async (): Promise<string> =>
      (await acme.kubectl(['get', 'events', '-o', 'jsonpath={.items[*].message}'])).stdout
    await until('the Event', async () => (await events()).includes('too large for this member'))
  })

  it('is withdrawn when the admin no longer exports it: copies go, what the tenant wrote stays', async () => {
    await kcp.admin.kubectl(['patch', 'mc/east', '--type=merge', '-p', '{"spec":{"exportedAPIs":null}}'])
    await until('no copies', async () => (await copy('large')) === undefined)
    await until('the label gone', async () => (await read(acme, 'crd', crd))?.metadata.labels === undefined)
    expect((await read(acme, 'widget', 'large'))?.['spec']).to.have.property('size')
    await until('nothing left to withdraw', async () => (await told()) === '')
    expect((await read(kcp.admin, 'mc', 'east'))?.['status']).to.not.have.property('exportedAPIs')
  })
})
