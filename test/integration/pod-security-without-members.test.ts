// The default pod security where no member can run pods: a warning, until a member is registered that may run them.
import { expect } from 'chai'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'
import { waitFor } from '#test/support/index.ts'

const labels = { app: 'web' }
const beyond: readonly {
  readonly title: string
  readonly spec: object
  readonly container?: object
  readonly says: string
}[] = [
  {
    title: 'privileged',
    spec: {},
    container: { securityContext: { privileged: true } },
    says: 'would violate PodSecurity "baseline:latest": privileged',
  },
  { title: 'hostNetwork', spec: { hostNetwork: true }, says: 'host namespaces (hostNetwork=true)' },
  { title: 'hostPath', spec: { volumes: [{ name: 'v', hostPath: { path: '/' } }] }, says: 'hostPath volumes' },
  { title: 'hostPort', spec: {}, container: { ports: [{ containerPort: 80, hostPort: 80 }] }, says: 'hostPort' },
  { title: 'nodeName', spec: { nodeName: 'n' }, says: 'no member will run this' },
  {
    title: 'system-node-critical',
    spec: { priorityClassName: 'system-node-critical' },
    says: 'no member will run this',
  },
]
const template = ({ spec, container = {} }: (typeof beyond)[number], restartPolicy: string) => ({
  metadata: { labels },
  spec: { restartPolicy, containers: [{ name: 'web', image: 'i', ...container }], ...spec },
})
const selector = { matchLabels: labels }
const kinds = [
  ['api/v1', 'v1', 'Pod', (row: (typeof beyond)[number]) => template(row, 'Always')],
  ...(['Deployment', 'ReplicaSet', 'DaemonSet'] as const).map(
    (kind) =>
      [
        'apis/apps/v1',
        'apps/v1',
        kind,
        (row: (typeof beyond)[number]) => ({ spec: { selector, template: template(row, 'Always') } }),
      ] as const,
  ),
  [
    'apis/batch/v1',
    'batch/v1',
    'Job',
    (row: (typeof beyond)[number]) => ({ spec: { template: template(row, 'Never') } }),
  ],
] as const

describe('the default pod security without members', function () {
  this.timeout(60_000)
  let kcp: KcpInstance
  let acme: Tenant
  before(async () => {
    kcp = await startInstance()
    acme = await kcp.tenant('acme')
  })
  after(() => kcp[Symbol.asyncDispose]())

  const create = (index: number, row: (typeof beyond)[number], name: string) => {
    const [path, apiVersion, kind, wrap] = kinds[index]!
    const body = { apiVersion, kind, ...wrap(row), metadata: { name: name.toLowerCase(), labels } }
    return acme.http.request('POST', `${acme.base}/${path}/namespaces/default/${kind.toLowerCase()}s`, { body })
  }

  for (const [index, [, , kind]] of kinds.entries())
    for (const row of beyond)
      it(`takes a ${kind} with ${row.title}, with a warning`, async () => {
        const response = await create(index, row, `bare-${row.title}`)
        expect(response.status, response.text).to.equal(201)
        expect(String(response.headers['warning']).replaceAll('\\"', '"')).to.contain(row.says)
      })

  it('takes a large Pod beyond the level, which a second thread answers', async () => {
    const [privileged] = beyond
    const annotations = { large: 'x'.repeat(200_000) }
    const metadata = { name: 'large', labels, annotations }
    const containers = Array.from({ length: 2000 }, (_, i) => ({
      ...privileged!.container,
      name: `c-${i}`,
      image: 'i',
    }))
    const body = { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers } }
    const response = await acme.http.request('POST', `${acme.base}/api/v1/namespaces/default/pods`, { body })
    expect(response.status, response.text.slice(0, 500)).to.equal(201)
    expect(String(response.headers['warning'])).to.contain('privileged')
  })

  it('refuses what a member that is registered later could run, and leaves what is stored', async () => {
    const member = { apiVersion: 'kcp.dev/v1alpha1', kind: 'MemberCluster', metadata: { name: 'late' } }
    await kcp.admin.kubectl(['create', '-f', '-'], { input: member })
    const [privileged] = beyond
    let attempt = 0
    const isRefused = async (): Promise<boolean> => (await create(0, privileged!, `late-${attempt++}`)).status === 403
    await waitFor(isRefused, { what: 'the refusal of a privileged pod', deadlineMs: 20_000 })
    for (const [index, [, , kind]] of kinds.entries())
      for (const row of beyond)
        expect((await create(index, row, `late-${row.title}`)).status, `${kind} ${row.title}`).to.equal(403)
    const stored = `${acme.base}/apis/apps/v1/namespaces/default/deployments/bare-privileged`
    expect((await acme.http.request('GET', stored)).status).to.equal(200)
  })

  it('does not refuse where only members are that may not run its pods', async () => {
    const other = { logicalClusterSelector: { matchLabels: { only: 'others' } } }
    const patch = JSON.stringify({ spec: other })
    await kcp.admin.kubectl(['patch', 'memberclusters', 'late', '--type=merge', '-p', patch])
    const [privileged] = beyond
    let attempt = 0
    const isTaken = async (): Promise<boolean> => (await create(0, privileged!, `others-${attempt++}`)).status === 201
    await waitFor(isTaken, { what: 'a privileged pod to be taken', deadlineMs: 20_000 })
  })
})
