// The host decides first who may access which logical cluster: with RBAC for one, the host itself refuses all others.
import { expect } from 'chai'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLogicalCluster, installOnHost, type Installation } from '#test/e2e/installation.ts'
import { kubectl, startCluster, waitFor, type Cluster } from '#test/support/index.ts'
import { isRecord, textAt } from './json.ts'

const group = '/apis/virtual.kcp.dev/v1alpha1'
const proxy = (cluster: string, rest = ''): string => `${group}/logicalclusters/${cluster}/proxy${rest}`

describe('alice, who has access to acme only', function () {
  this.timeout(180_000)
  const stack = new AsyncDisposableStack()
  let host: Cluster
  let installation: Installation
  /** Kubeconfigs of the host for alice and bob. */
  let alice: string
  let bob: string
  /** The audit log: one line for every request that reached our server. */
  let audit: string

  before(async () => {
    host = stack.use(await startCluster({ name: 'host' }))
    const dir = mkdtempSync(join(tmpdir(), 'kcp-refusals-'))
    stack.defer(() => rmSync(dir, { recursive: true, force: true }))
    audit = join(dir, 'audit.log')
    installation = stack.use(await installOnHost({ host }, ['--audit-log', audit]))
    await createLogicalCluster(installation, 'acme', 'alice')
    await createLogicalCluster(installation, 'bobs', 'bob')
    await installation.tenant('acme', 'alice')
    await installation.tenant('bobs', 'bob')
    alice = await host.kubeconfigFor({ commonName: 'alice', organizations: ['tenants'] })
    bob = await host.kubeconfigFor({ commonName: 'bob', organizations: ['tenants'] })
    // Bob's logical cluster contains an object that alice must not see.
    await as(bob, 'create', '--raw', proxy('bobs', '/api/v1/namespaces/default/configmaps'), '-f', '-')
  })
  after(() => stack.disposeAsync())

  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'secret-plan' } }
  const as = (kubeconfig: string, ...args: string[]) =>
    kubectl(kubeconfig, args, { expectCode: 'any', ...(args.includes('-f') ? { input: body } : {}) })
  const get = (path: string, kubeconfig = alice) => as(kubeconfig, 'get', '--raw', path)

  it('reads and writes in acme', async () => {
    const { code, stdout, stderr } = await get(proxy('acme', '/api/v1/namespaces/default'))
    expect(code, stderr).to.equal(0)
    expect(textAt(JSON.parse(stdout), 'metadata.name')).to.equal('default')
    const made = await as(alice, 'create', '--raw', proxy('acme', '/api/v1/namespaces/default/configmaps'), '-f', '-')
    expect(made.code, made.stderr).to.equal(0)
  })

  it('reads an OpenAPI document by the hash of an older one, because the host passes no redirects on', async () => {
    const { code, stdout, stderr } = await get(proxy('acme', '/openapi/v3/apis/batch/v1?hash=older'))
    expect(code, stderr).to.equal(0)
    expect(textAt(JSON.parse(stdout), 'openapi')).to.equal('3.0.0')
  })

  it('sees the admin of the host refused with what gives rights, whether the logical cluster exists or not', async () => {
    for (const name of ['acme', 'missing']) {
      const { code, stderr } = await get(proxy(name, '/api/v1/namespaces'), host.kubeconfig)
      expect(code).to.equal(1)
      expect(stderr).to.include(`spec.owners of LogicalCluster "${name}" in the host does not name this user`)
    }
  })

  it('is refused what bob can see: the object exists', async () => {
    const { code, stdout, stderr } = await get(proxy('bobs', '/api/v1/namespaces/default/configmaps/secret-plan'), bob)
    expect(code, stderr).to.equal(0)
    expect(isRecord(JSON.parse(stdout))).to.equal(true)
  })

  for (const path of [
    proxy('bobs'),
    proxy('bobs', '/'),
    proxy('bobs', '/api/v1/namespaces/default/configmaps/secret-plan'),
    proxy('bobs', '/api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=1'),
    proxy('bobs', '/apis'),
    proxy('bobs', '/openapi/v3'),
    proxy('bobs', '/healthz'),
    proxy('no-such', '/api/v1/namespaces'),
    proxy('root', '/api/v1/namespaces'),
    proxy('*', '/api/v1/configmaps'),
    `${group}/logicalclusters/bobs`,
    `${group}/logicalclusters`,
  ])
    it(`is refused GET ${path} by the host itself`, async () => {
      const { code, stderr } = await get(path)
      expect(code).to.not.equal(0)
      // The message names the host's resource and user; it contains nothing from our server.
      expect(stderr).to.match(
        /User "alice" cannot (get|list|watch) resource "logicalclusters(\/proxy)?" in API group "virtual\.kcp\.dev" at the cluster scope/,
      )
    })

  for (const path of [
    '/clusters/bobs/api/v1/namespaces',
    '/clusters/*/api/v1/configmaps',
    '/clusters/acme/api/v1/namespaces',
  ])
    it(`is refused GET ${path}, which is not a path of the host`, async () => {
      const { code, stderr } = await get(path)
      expect(code).to.not.equal(0)
      expect(stderr).to.match(/User "alice" cannot get path/)
    })

  for (const [method, args] of [
    ['creates', ['create', '--raw', proxy('bobs', '/api/v1/namespaces/default/configmaps'), '-f', '-']],
    ['replaces', ['replace', '--raw', proxy('bobs', '/api/v1/namespaces/default/configmaps/secret-plan'), '-f', '-']],
    ['deletes', ['delete', '--raw', proxy('bobs', '/api/v1/namespaces/default/configmaps/secret-plan')]],
  ] as const)
    it(`cannot ${method} there`, async () => {
      const { code, stderr } = await as(alice, ...args)
      expect(code).to.not.equal(0)
      expect(stderr).to.match(/User "alice" cannot (create|update|delete) resource "logicalclusters\/proxy"/)
    })

  it('cannot reach it with other spellings of the name', async () => {
    for (const path of [
      `${group}/logicalclusters/acme/proxy/../../bobs/proxy/api/v1/namespaces`,
      `${group}/logicalclusters/acme/proxy/%2e%2e/%2e%2e/bobs/proxy/api/v1/namespaces`,
      `${group}/logicalclusters/acme%2f..%2fbobs/proxy/api/v1/namespaces`,
      `${group}/logicalclusters/acme/proxy/clusters/bobs/api/v1/namespaces`,
      `${group}/logicalclusters//bobs/proxy/api/v1/namespaces`,
    ]) {
      const { code, stdout } = await get(path)
      expect(code, `${path} gave ${stdout.slice(0, 300)}`).to.not.equal(0)
    }
  })

  it('may neither impersonate other users there nor make herself an owner', async () => {
    for (const args of [
      ['get', '--raw', proxy('bobs', '/api/v1/namespaces'), '--as=bob'],
      ['patch', 'logicalclusters.kcp.dev/bobs', '--type=merge', '-p', '{"spec":{"owners":[]}}'],
      ['get', 'logicalclusters.kcp.dev/bobs'],
      ['get', 'records.storage.kcp.dev', '-A'],
      ['get', 'secrets', '-n', 'kcp-system'],
    ]) {
      const { code, stderr } = await as(alice, ...args)
      expect(code, args.join(' ')).to.not.equal(0)
      expect(stderr, args.join(' ')).to.match(/cannot|doesn't have a resource type/)
    }
  })

  it('has sent nothing of that to our server', async () => {
    const lines = (): { user: string; uri: string }[] =>
      readFileSync(audit, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line): unknown => JSON.parse(line))
        .map((event) => ({ user: textAt(event, 'user.username'), uri: textAt(event, 'requestURI') }))
    // The line of the last request is written after all others.
    await get(proxy('acme', '/api/v1/namespaces/last'))
    await waitFor(() => lines().some(({ user, uri }) => user === 'alice' && uri.includes('/namespaces/last')), {
      what: 'the line of the last request',
      deadlineMs: 20_000,
    })
    const ofAlice = lines().filter(({ user }) => user === 'alice')
    expect(ofAlice.filter(({ uri }) => !uri.includes('/logicalclusters/acme/proxy'))).to.deep.equal([])
    // Bob's own requests did reach it.
    expect(lines().some(({ user, uri }) => user === 'bob' && uri.includes('/logicalclusters/bobs/proxy'))).to.equal(
      true,
    )
  })
})
