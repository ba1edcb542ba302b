// ClusterProfiles with access: others use a member (a real kube-apiserver) and a logical cluster through `kcp access`
// and our proxy, and nothing else. The client library of the Cluster Inventory API is the outside test.
import { expect } from 'chai'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { stringify } from 'yaml'
import { redirected, startHostileServer } from '#test/support/hostile-answers.ts'
import {
  ensurePrograms,
  freePort,
  kcpProgram,
  kubectl,
  runCommand,
  runKcp,
  startCluster,
  startKcp,
  waitFor,
  type Cluster,
  type ManagedProcess,
} from '#test/support/index.ts'
import { openRawClient, type RawClient, type RawResponse } from './raw-client.ts'

interface Report {
  readonly profile: string
  readonly server?: string
  readonly version?: string
  readonly seen?: string
  readonly error?: string
}

const within = { deadlineMs: 60_000, intervalMs: 200 }
const rbac = 'rbac.authorization.k8s.io'
const access = (resource: string) => `/apis/virtual.kcp.dev/v1alpha1/${resource}`

describe('access to clusters of the inventory', function () {
  this.timeout(30 * 60_000) // the first build compiles everything
  const stack = new AsyncDisposableStack()
  const dir = mkdtempSync(join(tmpdir(), 'kcp-access-'))
  stack.defer(() => rmSync(dir, { recursive: true, force: true }))
  let program: string
  let host: Cluster
  let east: Cluster
  let url: string
  /** `fleet` may use member `east` and logical cluster `acme`; `stranger` may use nothing. */
  let fleet: string
  let stranger: string
  /** Without credentials of its own. */
  let proxy: RawClient

  before(async () => {
    program = (await ensurePrograms(['cluster-inventory']))['cluster-inventory']
    ;[host, east] = (
      await Promise.all(['host', 'east'].map((name) => startCluster({ name, controllerManager: name === 'host' })))
    ).map((cluster) => stack.use(cluster)) as [Cluster, Cluster]
    const env = { KUBECONFIG: host.kubeconfig }
    const address = host.hostAddress
    const port = await freePort(address)
    const where = ['--port', String(port), '--bind-address', address, '--advertise-address', address]
    url = `https://${address}:${port}`
    await started(stack.use(await startKcp(['apiserver', ...where], { env })), 'kcp apiserver is ready')
    await host.kubectl(['create', '-f', join(import.meta.dirname, 'cluster-profile-crd.yaml')])
    const operator = await startKcp(['operator', '--cluster-profiles'], { env })
    await started(stack.use(operator), 'kcp operator is ready')
    await runKcp(['member', 'join', 'east', '--kubeconfig', east.kubeconfig, '--host-kubeconfig', host.kubeconfig])
    await openMember()
    await openLogicalCluster()
    fleet = await host.kubeconfigFor({ commonName: 'fleet' })
    stranger = await host.kubeconfigFor({ commonName: 'stranger' })
    await grant('memberclusters/access', 'east')
    await grant('logicalclusters/access', 'acme')
    proxy = stack.use(openRawClient({ port, host: address }))
  })
  after(() => stack.disposeAsync())

  /** The admin of the member lets kcp act as one ServiceAccount, which may work on ConfigMaps. */
  async function openMember(): Promise<void> {
    await east.kubectl(['create', 'namespace', 'team'])
    await east.kubectl(['create', 'serviceaccount', 'fleet', '-n', 'team'])
    await east.kubectl(['create', 'clusterrole', 'fleet', '--verb=*', '--resource=configmaps'])
    const bind = ['create', 'clusterrolebinding', 'fleet', '--clusterrole=fleet', '--serviceaccount=team:fleet']
    await east.kubectl(bind)
    const verb = ['--verb=impersonate', '--resource=serviceaccounts', '--resource-name=fleet']
    await east.kubectl(['create', 'role', 'kcp-access', '-n', 'team', ...verb])
    const to = ['--role=kcp-access', '--serviceaccount=kcp-system:kcp-syncer']
    await east.kubectl(['create', 'rolebinding', 'kcp-access', '-n', 'team', ...to])
    await patch('memberclusters.kcp.dev/east', { spec: { access: accessAs('team', 'fleet') } })
  }

  async function openLogicalCluster(): Promise<void> {
    for (const name of ['acme', 'beta']) {
      const object = { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name } }
      await host.kubectl(['create', '-f', '-'], { input: object })
      await host.kubectl(['wait', '--for=condition=Ready', `lc/${name}`, '--timeout=60s'])
      const file = join(dir, `${name}.kubeconfig`)
      writeFileSync(file, (await runKcp(['kubeconfig', name, '--host-kubeconfig', host.kubeconfig])).stdout)
      await kubectl(file, ['create', 'serviceaccount', 'fleet'])
      const role = ['create', 'role', 'fleet', '--verb=*', '--resource=configmaps']
      await kubectl(file, role)
      await kubectl(file, ['create', 'rolebinding', 'fleet', '--role=fleet', '--serviceaccount=default:fleet'])
    }
    await patch('logicalclusters.kcp.dev/acme', { spec: { access: accessAs('default', 'fleet') } })
  }

  const accessAs = (namespace: string, name: string) => ({ serviceAccountRef: { namespace, name } })
  const patch = (object: string, change: object) =>
    host.kubectl(['patch', object, '--type=merge', '-p', JSON.stringify(change)])
  async function grant(resource: string, name: string): Promise<void> {
    const [id] = resource.split('/')
    const rules = [{ apiGroups: ['virtual.kcp.dev'], resources: [resource], resourceNames: [name], verbs: ['create'] }]
    const role = { apiVersion: `${rbac}/v1`, kind: 'ClusterRole', metadata: { name: `use-${id}-${name}` }, rules }
    await host.kubectl(['create', '-f', '-'], { input: role })
    await host.kubectl([
      'create',
      'clusterrolebinding',
      role.metadata.name,
      `--clusterrole=${role.metadata.name}`,
      '--user=fleet',
    ])
  }
  const revoke = (name: string) => host.kubectl(['delete', 'clusterrolebinding', name])
  const bindAgain = (name: string) =>
    host.kubectl(['create', 'clusterrolebinding', name, `--clusterrole=${name}`, '--user=fleet'])

  /** Asks the host for a token, as the plugin does; empty if it is refused. */
  async function tokenFor(resource: string, name: string, kubeconfig = fleet): Promise<string> {
    const input = { apiVersion: 'virtual.kcp.dev/v1alpha1', kind: 'AccessToken', metadata: { name } }
    const args = ['create', '--raw', `${access(resource)}/${name}/access`, '-f', '-']
    const { stdout, code } = await kubectl(kubeconfig, args, { input, expectCode: 'any' })
    return code === 0 ? (JSON.parse(stdout) as { status: { token: string } }).status.token : ''
  }
  const asked = (token: string, path: string, headers: readonly string[] = []): Promise<RawResponse> =>
    proxy.request('GET', path, { headers: ['Authorization', `Bearer ${token}`, ...headers] })
  const statusOf = async (token: string, path: string): Promise<number> => (await asked(token, path)).status
  const maps = '/services/members/east/api/v1/namespaces/default/configmaps'

  async function inventory(kubeconfig: string): Promise<Report[]> {
    const exec = {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: kcpProgram,
      args: ['access', '--kubeconfig', kubeconfig],
      provideClusterInfo: true,
      interactiveMode: 'Never',
    }
    const providers = join(dir, 'providers.json')
    writeFileSync(providers, JSON.stringify({ providers: [{ name: 'kcp', execConfig: exec }] }))
    const reader = { KUBECONFIG: host.kubeconfig, PATH: process.env['PATH'] }
    const { stdout } = await runCommand(program, [providers, 'kcp-system'], { env: reader, timeoutMs: 90_000 })
    return JSON.parse(stdout) as Report[]
  }

  async function started(kcp: ManagedProcess, text: string): Promise<void> {
    await waitFor(() => kcp.log().includes(text), { what: `"${text}" in the log`, ...within })
  }

  it('lets the client library of the Cluster Inventory API work in a member and a logical cluster', async () => {
    const profile = async (name: string): Promise<KubeObject | undefined> => {
      const args = ['get', 'clusterprofiles', name, '-n', 'kcp-system', '-o', 'json', '--ignore-not-found']
      const { stdout } = await host.kubectl(args)
      return stdout === '' ? undefined : (JSON.parse(stdout) as KubeObject)
    }
    const isOpen = async (name: string): Promise<boolean> =>
      ((await profile(name))?.['status'] as { accessProviders?: unknown } | undefined)?.accessProviders !== undefined
    for (const name of ['east', 'acme.logicalcluster'])
      await waitFor(() => isOpen(name), { what: `the access of ${name}`, ...within })
    expect(await profile('beta.logicalcluster'), 'of a logical cluster without spec.access').to.equal(undefined)
    const reports = await inventory(fleet)
    for (const { profile, error, seen } of reports)
      expect([error, seen !== undefined], profile).to.deep.equal([undefined, true])
    expect(reports.map(({ profile, server }) => [profile, server])).to.deep.equal([
      ['acme.logicalcluster', `${url}/clusters/acme`],
      ['east', `${url}/services/members/east`],
    ])
    // It really was the member.
    const [east_report] = reports.filter(({ profile: of }) => of === 'east')
    await east.kubectl(['get', 'configmap', east_report?.seen ?? '', '-n', 'default'])
    const refused = await inventory(stranger)
    expect(
      refused.every(({ error }) => error?.includes('exec') === true),
      JSON.stringify(refused),
    ).to.equal(true)
  })

  it('accepts a token for its own member or logical cluster, and nowhere else', async () => {
    const [east, acme] = [await tokenFor('memberclusters', 'east'), await tokenFor('logicalclusters', 'acme')]
    const inAcme = '/clusters/acme/api/v1/namespaces/default/configmaps'
    expect([await statusOf(east, maps), await statusOf(acme, inAcme)]).to.deep.equal([200, 200])
    const elsewhere = [
      ...[maps.replace('east', 'west'), inAcme, '/clusters/*/api/v1/configmaps', '/api/v1/configmaps'],
      ...['/clusters/root/api/v1/configmaps', '/services/apiexport/acme/widgets/clusters/*/api/v1/configmaps'],
      `${access('memberclusters')}/east/access`,
    ]
    for (const path of elsewhere) expect(await statusOf(east, path), path).to.equal(401)
    for (const path of [maps, inAcme.replace('acme', 'beta'), '/clusters/*/api/v1/configmaps'])
      expect(await statusOf(acme, path), path).to.equal(401)
    // A token with another target: the signature does not fit.
    const [head = '', claims = '', signature = ''] = east.split('.')
    const wider = Buffer.from(claims, 'base64url').toString().replaceAll('east', 'west')
    const forged = [head, Buffer.from(wider).toString('base64url'), signature].join('.')
    expect(await statusOf(forged, maps.replace('east', 'west'))).to.equal(401)
    // Only these tokens count here, and nobody asks on behalf of others.
    expect((await proxy.request('GET', maps)).status).to.equal(401)
    expect(await tokenFor('memberclusters', 'east', stranger)).to.equal('')
    expect(await tokenFor('logicalclusters', 'beta')).to.equal('')
  })

  it('acts in the member as the ServiceAccount that its MemberCluster names, whatever the client claims', async () => {
    const token = await tokenFor('memberclusters', 'east')
    const whoami = async (...headers: string[]): Promise<RawResponse> =>
      proxy.request('POST', '/services/members/east/apis/authentication.k8s.io/v1/selfsubjectreviews', {
        headers: ['Authorization', `Bearer ${token}`, ...headers],
        body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
      })
    const masters = ['X-Remote-User', 'system:admin', 'X-Remote-Group', 'system:masters']
    const { status, text } = await whoami(...masters, 'Cookie', 'a=b', 'X-Forwarded-For', '127.0.0.1')
    expect(status, text).to.equal(201)
    const { userInfo } = (JSON.parse(text) as { status: { userInfo: { username: string; groups: string[] } } }).status
    expect(userInfo.username).to.equal('system:serviceaccount:team:fleet')
    expect(userInfo.groups).not.to.include('system:masters')
    for (const header of ['Impersonate-User', 'Impersonate-Group', 'impersonate-uid'])
      expect((await whoami(header, 'system:admin')).status, header).to.be.oneOf([400, 401, 403])
    expect(await statusOf(token, '/services/members/east/api/v1/secrets')).to.equal(403)
  })

  it('refuses every other way to spell a path', async () => {
    const token = await tokenFor('memberclusters', 'east')
    for (const path of [
      '/services/members/east/../west/api/v1/configmaps',
      '/services/members/east/%2e%2e/west/api/v1/configmaps',
      '/services/members/east%2f..%2fwest/api/v1/configmaps',
      '/services/members/east/api/v1/..%2f..%2fmetrics',
      '/services/members/%65ast/api/v1/configmaps',
      '/services/members/EAST/api/v1/configmaps',
      '/services/members/east.x/api/v1/configmaps',
      '/services/members//api/v1/configmaps',
      '/services/members/east//api/v1/configmaps',
      '/services/members/east/metrics',
      '/services/members/east/as/kube-system/default/api/v1/configmaps',
    ])
      expect(await statusOf(token, path), path).to.be.oneOf([400, 401, 404])
  })

  it('ends at once when the right or the consent is revoked, also open watches', async () => {
    const [token, inAcme] = [await tokenFor('memberclusters', 'east'), await tokenFor('logicalclusters', 'acme')]
    const path = '/clusters/acme/api/v1/namespaces/default/configmaps'
    const until = (what: string, of: string, at: string, status: number) =>
      waitFor(async () => (await statusOf(of, at)) === status, { what, deadlineMs: 5000, intervalMs: 100 })
    const open = new Promise<void>((resolve, reject) => {
      proxy.request('GET', `${maps}?watch=1`, { headers: ['Authorization', `Bearer ${token}`] }).then(
        () => resolve(),
        () => resolve(),
      )
      setTimeout(() => reject(new Error('the watch is still open')), 20_000).unref()
    })
    await revoke('use-memberclusters-east')
    await revoke('use-logicalclusters-acme')
    await until('the end of the right to the member', token, maps, 403)
    await until('the end of the right to the logical cluster', inAcme, path, 401)
    await open
    expect(await tokenFor('memberclusters', 'east')).to.equal('')
    await bindAgain('use-memberclusters-east')
    await bindAgain('use-logicalclusters-acme')
    await until('the right to the member', token, maps, 200)
    await until('the right to the logical cluster', inAcme, path, 200)
    await patch('memberclusters.kcp.dev/east', { spec: { access: null } })
    await patch('logicalclusters.kcp.dev/acme', { spec: { access: null } })
    await until('the end of the consent for the member', token, maps, 403)
    await until('the end of the consent for the logical cluster', inAcme, path, 401)
    expect(await tokenFor('memberclusters', 'east')).to.equal('')
  })

  it('passes nothing on that a member uses against a client, and nothing of the client to a member', async () => {
    const member = stack.use(await startHostileServer())
    const received: string[] = []
    await register('evil', { server: member.url, ca: member.ca })
    await grant('memberclusters/access', 'evil')
    const token = await tokenFor('memberclusters', 'evil')
    const get = (headers: readonly string[] = []) => asked(token, '/services/members/evil/api/v1/configmaps', headers)
    member.answerWith('redirect')
    expect((await get()).status).to.equal(503)
    expect(member.asked.filter((path) => path.includes(redirected))).to.deep.equal([])
    member.answerWith((_request, response) => response.setHeader('x-large', 'x'.repeat(64 * 1024)).end('{}'))
    expect((await get()).status).to.equal(503)
    member.answerWith((request, response) => {
      received.push(...Object.keys(request.headers))
      response.setHeader('set-cookie', 'a=b').setHeader('strict-transport-security', 'max-age=1')
      response.setHeader('content-type', 'application/json').end('{}')
    })
    const { status, headers } = await get(['Cookie', 'a=b', 'X-Remote-User', 'admin', 'Proxy-Authorization', 'x'])
    expect(status).to.equal(200)
    expect(headers).not.to.have.any.keys('set-cookie', 'strict-transport-security')
    expect(headers).to.include({ 'content-security-policy': 'sandbox', 'x-content-type-options': 'nosniff' })
    expect(received).not.to.include.members(['cookie'])
    expect(received.filter((name) => /^(cookie|x-remote|proxy-)/.test(name))).to.deep.equal([])
    expect((await get(['User-Agent', 'x'.repeat(64 * 1024)])).status).to.equal(431)
  })

  /** A MemberCluster that everybody with the right may use, at this address. */
  async function register(name: string, { server, ca }: { readonly server: string; readonly ca: string }) {
    const cluster = { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') }
    const kubeconfig = stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name, cluster }],
      users: [{ name, user: { token: 'secret of the installation' } }],
      contexts: [{ name, context: { cluster: name, user: name } }],
      'current-context': name,
    })
    const metadata = { name, namespace: 'kcp-system' }
    await host.kubectl(['create', '-f', '-'], {
      input: { apiVersion: 'v1', kind: 'Secret', metadata, stringData: { kubeconfig } },
    })
    const spec = { connection: { kubeconfigSecretRef: metadata }, access: accessAs('team', 'fleet') }
    await host.kubectl(['create', '-f', '-'], {
      input: { apiVersion: 'kcp.dev/v1alpha1', kind: 'MemberCluster', metadata: { name }, spec },
    })
  }
})
