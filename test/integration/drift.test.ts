// Changes that somebody makes in a member to what kcp has written there: corrected or, where a Placement says so,
// reported. With a real API server as member, because it says who owns which field.
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { runKcp, startCluster, waitFor, type Cluster } from '#test/support/index.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

const within = { deadlineMs: 30_000, intervalMs: 100 }

interface Condition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
}

describe('changes that are made in a member', function () {
  this.timeout(60_000)
  const stack = new AsyncDisposableStack()
  let kcp: KcpInstance
  let acme: Tenant
  let east: Cluster
  let space = ''

  const labels = { app: 'web' }
  const container = { name: 'web', image: 'example/web:1', envFrom: [{ configMapRef: { name: 'settings' } }] }
  const template = { metadata: { labels }, spec: { containers: [container] } }
  const objects = [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings' }, data: { mode: 'fast' } },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web', labels: { team: 'blue' } },
      spec: { replicas: 2, selector: { matchLabels: labels }, template },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'web' },
      spec: { selector: labels, ports: [{ port: 80, targetPort: 8080 }] },
    },
  ]
  const placement = (drift: string): object => ({
    apiVersion: 'kcp.dev/v1alpha1',
    kind: 'Placement',
    metadata: { name: 'drift' },
    spec: { apply: { drift } },
  })
  const inEast = async (...args: string[]): Promise<string> =>
    (await east.kubectl([...args, '-n', space], { expectCode: 'any' })).stdout
  const value = (what: string, path: string): Promise<string> => inEast('get', what, '-o', `jsonpath={${path}}`)
  const until = (what: string, attempt: () => Promise<boolean>): Promise<unknown> =>
    waitFor(async () => (await attempt()) || undefined, { what, ...within })
  const drifted = async (what: string): Promise<Condition | undefined> => {
    const { stdout } = await acme.kubectl(['get', what, '-o', 'json'])
    const { status = {} } = JSON.parse(stdout) as KubeObject & { status?: { conditions?: Condition[] } }
    return status.conditions?.find(({ type }) => type === 'Drifted')
  }
  const report = async (what: string): Promise<string> => {
    const path = 'jsonpath={.metadata.annotations.status\\.kcp\\.dev/east}'
    return (await acme.kubectl(['get', what, '-o', path])).stdout
  }

  before(async function () {
    this.timeout(200_000)
    kcp = stack.use(await startInstance())
    acme = await kcp.tenant('acme')
    east = stack.use(await startCluster({ name: 'east' }))
    await runKcp(['member', 'join', 'east', '--kubeconfig', east.kubeconfig, '--root-dir', kcp.rootDir])
    const { stdout } = await kcp.admin.kubectl(['get', 'lc', 'acme', '-o', 'jsonpath={.status.id}'])
    space = `${stdout}-default`
    await acme.kubectl(['apply', '-f', '-'], { input: { apiVersion: 'v1', kind: 'List', items: objects } })
    await until('the copy', async () => (await value('deploy/web', '.spec.replicas')) === '2')
    await until('the Service', async () => (await inEast('get', 'svc/web', '-o', 'name')) !== '')
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  it('are corrected without a Placement that says otherwise', async () => {
    await inEast('scale', 'deploy/web', '--replicas=5')
    await until('two replicas', async () => (await value('deploy/web', '.spec.replicas')) === '2')
    expect(await drifted('deploy/web')).to.equal(undefined)
  })

  it('are reported with their fields and who has made them, and stay', async () => {
    await acme.kubectl(['apply', '-f', '-'], { input: placement('Report') })
    await until('the decision', async () => {
      const { stdout } = await acme.kubectl(['get', 'deploy/web', '-o', 'yaml'])
      return stdout.includes('"drift":"Report"')
    })
    await inEast('scale', 'deploy/web', '--replicas=5')
    await until('the condition', async () => (await drifted('deploy/web')) !== undefined)
    expect(await drifted('deploy/web')).to.include({ status: 'True', reason: 'Drifted' })
    expect((await drifted('deploy/web'))?.message).to.equal('east: .spec.replicas is changed by "kubectl"')
    const { stdout: events } = await acme.kubectl(['get', 'events', '--field-selector=reason=Drifted', '-o', 'yaml'])
    expect(events).to.contain('member cluster "east": .spec.replicas is changed by "kubectl"')
    const { stdout: explained } = await runKcp(['explain', 'deploy/web', '-c', 'acme', '--root-dir', kcp.rootDir], {
      expectCode: 'any',
    })
    expect(explained).to.contain('changed in member east: .spec.replicas is changed by "kubectl"')
    expect(await value('deploy/web', '.spec.replicas')).to.equal('5')
  })

  it('stay while the tenant changes other fields', async () => {
    await acme.kubectl(['set', 'image', 'deploy/web', 'web=example/web:2'])
    await until('the image', async () =>
      (await value('deploy/web', '.spec.template.spec.containers[0].image')).endsWith(':2'),
    )
    expect(await value('deploy/web', '.spec.replicas')).to.equal('5')
    expect((await drifted('deploy/web'))?.message).to.contain('.spec.replicas')
  })

  it('of what comes with workloads are reported, too, and so are fields that are gone', async () => {
    await inEast('patch', 'cm/settings', '--type=merge', '-p', '{"data":{"mode":"slow"}}')
    await inEast(
      'patch',
      'svc/web',
      '--type=json',
      '-p',
      '[{"op":"replace","path":"/spec/ports/0/targetPort","value":9}]',
    )
    await inEast('label', 'deploy/web', 'team-')
    await until('the report on the ConfigMap', async () => (await report('cm/settings')).includes('.data.mode'))
    await until('the condition of the Service', async () => (await drifted('svc/web')) !== undefined)
    expect((await drifted('svc/web'))?.message).to.match(
      /^east: \.spec\.ports\[port=80,protocol="TCP"\]\.targetPort is/,
    )
    await until('the lost label', async () => (await drifted('deploy/web'))?.message.includes('removed') === true)
    expect((await drifted('deploy/web'))?.message).to.contain('.metadata.labels.team is removed')
    expect(await value('cm/settings', '.data.mode')).to.equal('slow')
    await acme.kubectl(['set', 'image', 'deploy/web', 'web=example/web:3'])
    await until('the image', async () =>
      (await value('deploy/web', '.spec.template.spec.containers[0].image')).endsWith(':3'),
    )
    expect(await value('deploy/web', '.metadata.labels.team')).to.equal('')
    expect((await drifted('deploy/web'))?.message).to.contain('.metadata.labels.team is removed')
  })

  it('are not reported any more when the member undoes them', async () => {
    await inEast('patch', 'cm/settings', '--type=merge', '-p', '{"data":{"mode":"fast"}}')
    await until('no report', async () => !(await report('cm/settings')).includes('drift'))
  })

  it('in a copy whose lists repeat a key are reported, and go with the next change of the tenant', async () => {
    const env = [
      { name: 'A', value: '1' },
      { name: 'A', value: '2' },
    ]
    const twice = { metadata: { labels: { app: 'twice' } }, spec: { containers: [{ ...container, env }] } }
    const spec = { replicas: 1, selector: { matchLabels: { app: 'twice' } }, template: twice }
    const object = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'twice' }, spec }
    await acme.kubectl(['create', '-f', '-'], { input: object })
    await until('the copy', async () => (await value('deploy/twice', '.spec.replicas')) === '1')
    await inEast('scale', 'deploy/twice', '--replicas=4')
    await until('the condition', async () => (await drifted('deploy/twice')) !== undefined)
    expect((await drifted('deploy/twice'))?.message).to.equal('east: .spec.replicas is changed')
    expect(await value('deploy/twice', '.spec.replicas')).to.equal('4')
    await acme.kubectl(['label', 'deploy/twice', 'team=red'])
    await until('one replica', async () => (await value('deploy/twice', '.spec.replicas')) === '1')
    await until('no condition', async () => (await drifted('deploy/twice')) === undefined)
  })

  it("never touch kcp's own marks", async () => {
    const applied = (): Promise<string> => value('deploy/web', '.metadata.annotations.kcp\\.dev/applied')
    const before = await applied()
    await inEast('annotate', 'deploy/web', 'kcp.dev/applied=forged', '--overwrite')
    await until('the mark', async () => (await applied()) === before)
    expect(await value('deploy/web', '.spec.replicas')).to.equal('5')
  })

  it('are corrected as soon as the Placement says so', async () => {
    await acme.kubectl(['apply', '-f', '-'], { input: placement('Correct') })
    await until('two replicas', async () => (await value('deploy/web', '.spec.replicas')) === '2')
    await until('no condition', async () => (await drifted('deploy/web')) === undefined)
    await until('the port', async () => (await value('svc/web', '.spec.ports[0].targetPort')) === '8080')
    await until('no condition of the Service', async () => (await drifted('svc/web')) === undefined)
    expect(await value('deploy/web', '.metadata.labels.team')).to.equal('blue')
  })
})
