// The console's server side, as a browser uses it: sessions, and the Kubernetes API as the identity of the session.
import { expect } from 'chai'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { runKcp, waitFor } from '#test/support/index.ts'
import { newTicket, openBrowser, signedIn, type Browser } from './console-browser.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

const configMaps = '/api/v1/namespaces/default/configmaps'

describe('the console', function () {
  this.timeout(120_000)
  let kcp: KcpInstance
  let acme: Tenant
  let auditFolder: string

  before(async () => {
    auditFolder = mkdtempSync(join(tmpdir(), 'kcp-console-audit-'))
    kcp = await startInstance(['--audit-log', join(auditFolder, 'audit.log')])
    acme = await kcp.tenant('acme')
    await kcp.tenant('globex')
  })
  after(async () => {
    await kcp[Symbol.asyncDispose]()
    rmSync(auditFolder, { recursive: true, force: true })
  })

  /** A token of ServiceAccount `viewer` of acme, which may read ConfigMaps. */
  const viewerToken = async (): Promise<string> => {
    await acme.kubectl(['create', 'serviceaccount', 'viewer'], { expectCode: 'any' })
    await acme.kubectl(['create', 'clusterrole', 'viewer', '--verb=get,list,watch', '--resource=configmaps'], {
      expectCode: 'any',
    })
    const grant = ['create', 'clusterrolebinding', 'viewer', '--clusterrole=viewer', '--serviceaccount=default:viewer']
    await acme.kubectl(grant, { expectCode: 'any' })
    return (await acme.kubectl(['create', 'token', 'viewer'])).stdout.trim()
  }

  const auditLines = (): Record<string, unknown>[] =>
    readFileSync(join(auditFolder, 'audit.log'), 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Record<string, unknown>)

  describe('a session of the admin of the installation', () => {
    let browser: Browser
    before(async () => (browser = await signedIn(kcp)))
    after(() => browser[Symbol.asyncDispose]())

    it('says who it is, and when it ends', async () => {
      const answer = await browser.fetch('GET', '/console/api/session')
      const { user, realm, expires } = answer.json() as { user: string; realm: string; expires: string }
      expect([answer.status, user, realm]).to.deep.equal([200, 'kcp-admin', 'installation'])
      expect(Date.parse(expires) - Date.now()).to.be.within(7.9 * 3600e3, 8 * 3600e3)
    })

    it('sees all logical clusters', async () => {
      const { items } = (await browser.fetch('GET', '/console/api/clusters')).json() as { items: { name: string }[] }
      expect(items.map(({ name }) => name)).to.include.members(['acme', 'globex', 'root'])
    })

    it('reads and writes in any of them, with its own name in the audit log', async () => {
      const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'of-console' } }
      const made = await browser.fetch('POST', `/console/k8s/clusters/acme${configMaps}`, { body: object })
      expect(made.status, made.text).to.equal(201)
      const read = await browser.fetch('GET', `/console/k8s/clusters/acme${configMaps}/of-console`)
      expect(read.json()['kind']).to.equal('ConfigMap')
      const line = auditLines().find(
        ({ verb, requestURI: uri }) => verb === 'create' && uri === `/clusters/acme${configMaps}`,
      )
      const { user } = line as {
        user: { username: string; extra: Record<string, string[]> }
      }
      expect(user.username).to.equal('kcp-admin')
      expect(user.extra['authentication.kubernetes.io/credential-id']?.[0]).to.match(/^CONSOLE=[0-9a-f-]{36}$/)
    })

    it('reads Tables over all logical clusters', async () => {
      const headers = ['Accept', 'application/json;as=Table;g=meta.k8s.io;v=v1']
      const answer = await browser.fetch('GET', '/console/k8s/clusters/*/api/v1/configmaps?storedOnly=true', {
        headers,
      })
      const { kind, rows } = answer.json() as { kind: string; rows: { object: { metadata: object } }[] }
      expect(kind).to.equal('Table')
      const [row] = rows.filter(({ object }) => JSON.stringify(object).includes('"of-console"'))
      expect(row?.object.metadata).to.have.property('annotations').that.includes({ 'kcp.dev/logical-cluster': 'acme' })
    })
  })

  describe('a session of the admin of one logical cluster', () => {
    let browser: Browser
    before(async () => (browser = await signedIn(kcp, 'acme')))
    after(() => browser[Symbol.asyncDispose]())

    it('sees this one alone', async () => {
      const session = (await browser.fetch('GET', '/console/api/session')).json()
      expect([session['user'], session['realm']]).to.deep.equal(['admin', { cluster: 'acme' }])
      const { items } = (await browser.fetch('GET', '/console/api/clusters')).json() as { items: { name: string }[] }
      expect(items.map(({ name }) => name)).to.deep.equal(['acme'])
    })

    it('may do everything in it, and gets the same refusal for others, there or not', async () => {
      const status = async (path: string): Promise<number> => (await browser.fetch('GET', path)).status
      expect(await status('/console/k8s/clusters/acme/api/v1/secrets')).to.equal(200)
      const refused = await browser.fetch('GET', '/console/k8s/clusters/globex/api/v1/secrets')
      const missing = await browser.fetch('GET', '/console/k8s/clusters/nobody/api/v1/secrets')
      expect([refused.status, missing.status]).to.deep.equal([403, 403])
      expect(refused.text.replaceAll('globex', 'nobody')).to.equal(missing.text)
    })

    it('reads its own logical cluster where it asks for all', async () => {
      const answer = await browser.fetch('GET', '/console/k8s/clusters/*/api/v1/namespaces')
      const { items } = answer.json() as { items: { metadata: { name: string } }[] }
      expect([answer.status, items.map(({ metadata }) => metadata.name)]).to.deep.equal([
        200,
        ['default', 'kube-node-lease', 'kube-public', 'kube-system'],
      ])
    })
  })

  describe('a session that a token began', () => {
    it('has the rights of the token, and no others', async () => {
      await using browser = openBrowser(kcp.port)
      const begun = await browser.signIn({ token: await viewerToken() })
      expect([begun.status, begun.json()['user'], begun.json()['realm']]).to.deep.equal([
        201,
        'system:serviceaccount:default:viewer',
        { cluster: 'acme' },
      ])
      const status = async (path: string): Promise<number> => (await browser.fetch('GET', path)).status
      expect(await status(`/console/k8s/clusters/acme${configMaps}`)).to.equal(200)
      expect(await status('/console/k8s/clusters/acme/api/v1/secrets')).to.equal(403)
      expect(await status('/console/k8s/clusters/*/api/v1/configmaps')).to.equal(200)
      expect(await status(`/console/k8s/clusters/globex${configMaps}`)).to.equal(403)
    })

    it('ends with the token', async () => {
      const token = await viewerToken()
      await using browser = openBrowser(kcp.port)
      await browser.signIn({ token })
      await acme.kubectl(['delete', 'serviceaccount', 'viewer'])
      expect((await browser.fetch('GET', '/console/api/session')).status).to.equal(401)
      expect((await browser.fetch('GET', `/console/k8s/clusters/acme${configMaps}`)).status).to.equal(401)
    })
  })

  it('goes on after a restart: sessions that were not ended, and the memory of used links', async () => {
    const ticket = await newTicket(kcp)
    await using browser = openBrowser(kcp.port)
    await browser.signIn({ ticket })
    const ended = await signedIn(kcp)
    await ended.fetch('DELETE', '/console/api/session')
    await kcp.process.kill()
    await kcp.process.start()
    const signedOut = openBrowser(kcp.port)
    signedOut.cookie = ended.cookie
    for (const [who, status] of [
      [browser, 200],
      [signedOut, 401],
    ] as const)
      expect((await who.fetch('GET', '/console/api/session')).status).to.equal(status)
    expect((await signedOut.signIn({ ticket })).status).to.equal(401)
    await ended[Symbol.asyncDispose]()
    await signedOut[Symbol.asyncDispose]()
  })

  describe('kcp console', () => {
    it('prints a link, and says what it is good for', async () => {
      const { stdout, stderr } = await runKcp(['console', 'acme', '--root-dir', kcp.rootDir])
      expect(stdout).to.match(/^https:\/\/127\.0\.0\.1:\d+\/console\/#ticket=\S+\n$/)
      expect(stderr).to.include(
        'This link signs in the admin of logical cluster "acme". It works once, within 5 minutes.',
      )
    })

    it('refuses a logical cluster that does not exist', async () => {
      const { code, stderr } = await runKcp(['console', 'nobody', '--root-dir', kcp.rootDir], { expectCode: 'any' })
      expect([code, stderr]).to.deep.equal([1, 'kcp: there is no LogicalCluster "nobody"; kcp list lists them\n'])
    })

    it('ends all sessions', async () => {
      const browser = await signedIn(kcp, 'acme')
      const { stdout } = await runKcp(['console', '--end-all', '--root-dir', kcp.rootDir])
      expect(stdout).to.equal('all sessions of the console have ended\n')
      const status = async (): Promise<number> => (await browser.fetch('GET', '/console/api/session')).status
      await waitFor(async () => (await status()) === 401, { what: 'the end of the session', deadlineMs: 5000 })
      await browser[Symbol.asyncDispose]()
      await (await signedIn(kcp, 'acme'))[Symbol.asyncDispose]()
    })

    it('makes links that work once', async () => {
      const ticket = await newTicket(kcp)
      await using first = openBrowser(kcp.port)
      await using second = openBrowser(kcp.port)
      expect((await first.signIn({ ticket })).status).to.equal(201)
      expect((await second.signIn({ ticket })).status).to.equal(401)
      expect(second.cookie).to.equal('')
    })
  })
})
