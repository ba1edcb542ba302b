// `kcp start --cluster-profiles`: profiles in logical cluster `root`, in version v1alpha2 of their API, and the client
// library of the Cluster Inventory API, which finds a member and a logical cluster by them and works there.
import { expect } from 'chai'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { startSimulatedMember } from '#simulation/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import { ensurePrograms, kcpProgram, kubectl, runCommand, runKcp, waitFor } from '#test/support/index.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

interface Profile extends KubeObject {
  readonly status?: { readonly accessProviders?: readonly { readonly cluster: { readonly server: string } }[] }
}

const within = { deadlineMs: 90_000, intervalMs: 200 }

describe('ClusterProfiles without a host', function () {
  this.timeout(30 * 60_000) // the first build compiles everything
  const stack = new AsyncDisposableStack()
  const dir = mkdtempSync(join(tmpdir(), 'kcp-profiles-'))
  stack.defer(() => rmSync(dir, { recursive: true, force: true }))
  const life = new AbortController()
  stack.defer(() => life.abort())
  let program: string
  let kcp: KcpInstance
  let acme: Tenant

  before(async () => {
    program = (await ensurePrograms(['cluster-inventory']))['cluster-inventory']
    kcp = stack.use(await startInstance(['--cluster-profiles']))
    await admin(['create', '-f', join(import.meta.dirname, 'cluster-profile-crd.yaml')])
    acme = await kcp.tenant('acme')
    await kcp.tenant('beta')
    const options = { name: 'east', dir, log: silentLogger, signal: life.signal }
    const east = stack.use(await startSimulatedMember(options))
    const file = join(dir, 'east.kubeconfig')
    writeFileSync(file, east.kubeconfig)
    await runKcp(['member', 'join', 'east', '--kubeconfig', file, '--root-dir', kcp.rootDir])
    await open(acme.kubeconfig, 'lc/acme')
    await open(file, 'mc/east')
    const role = ['--role=kcp-access', '--serviceaccount=kcp-system:kcp-syncer']
    const verb = ['--verb=impersonate', '--resource=serviceaccounts', '--resource-name=fleet']
    await kubectl(file, ['create', 'role', 'kcp-access', '-n', 'default', ...verb])
    await kubectl(file, ['create', 'rolebinding', 'kcp-access', '-n', 'default', ...role])
  })
  after(() => stack.disposeAsync())

  const admin = (args: string[], options: object = {}) => kcp.admin.kubectl(args, options)
  /** Lets others work on ConfigMaps of the cluster, as ServiceAccount `fleet`. */
  async function open(kubeconfig: string, object: string): Promise<void> {
    await kubectl(kubeconfig, ['create', 'serviceaccount', 'fleet', '-n', 'default'])
    await kubectl(kubeconfig, ['create', 'clusterrole', 'fleet', '--verb=*', '--resource=configmaps'])
    const bind = ['create', 'clusterrolebinding', 'fleet', '--clusterrole=fleet', '--serviceaccount=default:fleet']
    await kubectl(kubeconfig, bind)
    const access = { serviceAccountRef: { namespace: 'default', name: 'fleet' } }
    await admin(['patch', object, '--type=merge', '-p', JSON.stringify({ spec: { access } })])
  }
  const profile = async (name: string): Promise<Profile | undefined> => {
    const kind = 'clusterprofiles.v1alpha2.multicluster.x-k8s.io'
    const { stdout } = await admin(['get', kind, name, '-n', 'kcp-system', '-o', 'json', '--ignore-not-found'])
    return stdout === '' ? undefined : (JSON.parse(stdout) as Profile)
  }
  const serverOf = (name: string): Promise<string> =>
    waitFor(async () => (await profile(name))?.status?.accessProviders?.[0]?.cluster.server, {
      what: `the access of ${name}`,
      ...within,
    })

  it('come in logical cluster root, and lead the client library into a member and a logical cluster', async () => {
    const servers = [await serverOf('acme.logicalcluster'), await serverOf('east')]
    expect(servers).to.deep.equal([
      `https://127.0.0.1:${kcp.port}/clusters/acme`,
      `https://127.0.0.1:${kcp.port}/services/members/east`,
    ])
    expect(await profile('beta.logicalcluster'), 'of a logical cluster without spec.access').to.equal(undefined)
    // The consumer is a user of root with the right to these two clusters, and no other.
    await admin(['create', 'serviceaccount', 'consumer', '-n', 'kcp-system'])
    for (const resource of ['memberclusters/access', 'logicalclusters/access']) {
      const name = resource.replace('/', '-')
      const rules = [{ apiGroups: ['virtual.kcp.dev'], resources: [resource], verbs: ['create'] }]
      const object = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name }, rules }
      await admin(['create', '-f', '-'], { input: object })
      await admin([
        'create',
        'clusterrolebinding',
        name,
        `--clusterrole=${name}`,
        '--serviceaccount=kcp-system:consumer',
      ])
    }
    const { stdout: token } = await admin(['create', 'token', 'consumer', '-n', 'kcp-system'])
    const consumer = join(dir, 'consumer.kubeconfig')
    const { stdout: config } = await admin(['config', 'view', '--raw', '--minify', '--flatten', '-o', 'json'])
    const parsed = JSON.parse(config) as { users: { user: object }[] }
    for (const entry of parsed.users) entry.user = { token: token.trim() }
    writeFileSync(consumer, JSON.stringify(parsed))
    const exec = {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: kcpProgram,
      args: ['access', '--kubeconfig', consumer],
      provideClusterInfo: true,
      interactiveMode: 'Never',
    }
    const providers = join(dir, 'providers.json')
    writeFileSync(providers, JSON.stringify({ providers: [{ name: 'kcp', execConfig: exec }] }))
    const env = { KUBECONFIG: kcp.admin.kubeconfig, PATH: process.env['PATH'] }
    const { stdout } = await runCommand(program, [providers, 'kcp-system'], { env, timeoutMs: 90_000 })
    const reports = JSON.parse(stdout) as { profile: string; server: string; seen?: string; error?: string }[]
    for (const { profile: name, error, seen } of reports)
      expect([error, seen !== undefined], name).to.deep.equal([undefined, true])
    expect(reports.map(({ server }) => server).sort()).to.deep.equal(servers.toSorted())
  })

  it('follow the access, and go with their logical cluster', async () => {
    await admin(['patch', 'lc/acme', '--type=merge', '-p', '{"spec":{"access":null}}'])
    const isClosed = async (): Promise<boolean> =>
      (await profile('acme.logicalcluster'))?.status?.accessProviders === undefined
    await waitFor(isClosed, { what: 'the end of the access', ...within })
    await admin(['delete', 'lc/acme', '--timeout=60s'])
    const isGone = async (): Promise<boolean> => (await profile('acme.logicalcluster')) === undefined
    await waitFor(isGone, { what: 'the profile to go', ...within })
  })
})
