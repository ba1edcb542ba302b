// How long each change of sign-in takes until it counts, with a real identity provider and the program as people run it. The
// times are printed; docs/how-to/sign-in.md has them.
import { expect } from 'chai'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { kcpProgram, waitFor } from '#test/support/index.ts'
import { NodeIdentityProvider, otherClient, publicClient, userPassword } from '#test/support/identity-provider.ts'
import { runSigningIn } from '#test/support/run-signing-in.ts'
import { SignInBrowser } from '#test/support/sign-in-browser.ts'
import { startInstance, type KcpInstance, type Tenant } from '#test/integration/kcp-instance.ts'

/** Seconds that an ID token is valid: more than the margin of kcp login. */
const tokenSeconds = 25
/** A withdrawn key counts so long, and a token that was verified 10 s more. */
const withdrawnMs = 5 * 60_000 + 10_000

describe('a change of sign-in', function () {
  this.timeout(600_000)
  const stack = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'kcp-sign-in-effects-'))
  stack.defer(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'sign-in.yaml')
  const measured: string[] = []
  let provider: NodeIdentityProvider
  let tenants: NodeIdentityProvider
  let kcp: KcpInstance
  let acme: Tenant
  let globex: Tenant

  const issuerOf = ({ url, authority }: NodeIdentityProvider, prefix: string, audience = publicClient): object => ({
    issuer: { url, audiences: [audience], certificateAuthority: authority },
    claimMappings: { username: { claim: 'sub', prefix }, groups: { claim: 'groups', prefix } },
  })
  const trust = (jwt: readonly object[]): void =>
    writeFileSync(
      file,
      JSON.stringify({ apiVersion: 'apiserver.config.k8s.io/v1', kind: 'AuthenticationConfiguration', jwt }),
    )
  const setOwn = (jwt: readonly object[] | null): Promise<unknown> => {
    const patch = JSON.stringify({ spec: { authentication: jwt && { jwt } } })
    return kcp.admin.kubectl(['patch', 'logicalcluster', 'acme', '--type=merge', '-p', patch])
  }

  before(async () => {
    provider = stack.use(await NodeIdentityProvider.start({ idTokenSeconds: tokenSeconds }))
    tenants = stack.use(await NodeIdentityProvider.start({ idTokenSeconds: 3600 }))
    trust([issuerOf(provider, 'oidc:')])
    kcp = stack.use(await startInstance(['--authentication-config', file, '--egress-allow', '127.0.0.1/32']))
    acme = await kcp.tenant('acme')
    globex = await kcp.tenant('globex')
    await acme.kubectl([
      'create',
      'clusterrolebinding',
      'viewers',
      '--clusterrole=view',
      '--group=oidc:viewers',
      '--group=own:viewers',
    ])
  })
  after(async () => {
    console.log(measured.map((line) => `      measured: ${line}`).join('\n'))
    await stack.disposeAsync()
  })

  /** A new ID token, and its refresh with the same cache. */
  const tokenOf = async (
    of: NodeIdentityProvider,
    {
      user = 'alice',
      client = publicClient,
      more = [],
      cache = mkdtempSync(join(folder, 'cache-')),
    }: { user?: string; client?: string; more?: readonly string[]; cache?: string } = {},
  ): Promise<string> => {
    const { url, authority } = of
    const browser = new SignInBrowser({ authority, username: user, password: userPassword })
    const args = [
      ...['login', `--oidc-issuer-url=${url}`, `--oidc-client-id=${client}`, `--token-cache-dir=${cache}`],
      ...[`--certificate-authority-data=${Buffer.from(authority).toString('base64')}`, '--skip-open-browser'],
      ...['--listen-address=127.0.0.1:0', ...more],
    ]
    const { stdout, stderr } = await runSigningIn(kcpProgram, args, { browser, home: folder })
    expect(stdout, stderr).to.not.equal('')
    return (JSON.parse(stdout) as { status: { token: string } }).status.token
  }
  const status = async (token: string, tenant = acme): Promise<number> => {
    const { promise, resolve, reject } = Promise.withResolvers<number>()
    const headers = { authorization: `Bearer ${token}` }
    const options = { host: '127.0.0.1', port: kcp.port, headers, rejectUnauthorized: false, agent: false as const }
    request({ ...options, path: `${tenant.base}/api/v1/namespaces/default/pods` }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
      .on('error', reject)
      .end()
    return await promise
  }
  /** Milliseconds from `since` until the token gets this status. */
  const until = async (
    token: string,
    wanted: number,
    { since = Date.now(), deadlineMs = 60_000, tenant = acme } = {},
  ): Promise<number> => {
    let seen = 0
    const check = async (): Promise<boolean> => (seen = await status(token, tenant)) === wanted
    await waitFor(check, { what: `status ${wanted} (last: ${seen})`, deadlineMs, intervalMs: 20 })
    return Date.now() - since
  }
  const note = (what: string, ms: number): void => void measured.push(`${what}: ${Math.round(ms)} ms`)
  const expiryOf = (token: string): number => {
    const [, payload = ''] = token.split('.')
    return (JSON.parse(Buffer.from(payload, 'base64url').toString()) as { exp: number }).exp * 1000
  }

  it('counts at once for a token that expires, or is of another client or issuer', async () => {
    provider.setGroups('alice', ['viewers'])
    const token = await tokenOf(provider)
    expect(await status(token)).to.equal(200)
    note('expired, after its time', await until(token, 401, { since: expiryOf(token) }))
    expect(await status(await tokenOf(provider, { client: otherClient }))).to.equal(401)
    expect(await status(await tokenOf(tenants))).to.equal(401)
  })

  it('of a group counts with the next token', async () => {
    const cache = mkdtempSync(join(folder, 'cache-'))
    const more = ['--oidc-extra-scope=offline_access', '--oidc-auth-request-extra-params=prompt=consent']
    const before = await tokenOf(provider, { cache, more })
    expect(await status(before)).to.equal(200)
    provider.setGroups('alice', ['devs'])
    const since = Date.now()
    const next = await tokenOf(provider, { cache, more: [...more, '--force-refresh'] })
    expect(await status(next)).to.equal(403)
    note('removed group, with the next token (kcp login included)', Date.now() - since)
    expect(await status(before)).to.equal(200)
    note('removed group, with the token before', await until(before, 401, { since }))
    provider.setGroups('alice', ['viewers'])
  })

  it('of the configuration counts within seconds, and one with an error changes nothing', async () => {
    const token = await tokenOf(provider)
    expect(await status(token)).to.equal(200)
    trust([{ issuer: { url: 'http://x' } }])
    await new Promise((resolve) => setTimeout(resolve, 5000))
    expect(await status(token)).to.equal(200)
    trust([issuerOf(provider, 'oidc:', 'nobody')])
    note('another audience in the file', await until(token, 401))
    trust([issuerOf(provider, 'oidc:')])
    note('the audience again', await until(await tokenOf(provider), 200))
  })

  it('of spec.authentication counts at once, and gives no name or group of Kubernetes', async () => {
    tenants.setGroups('carol', ['viewers', 'system:masters'])
    const token = await tokenOf(tenants, { user: 'carol' })
    expect(await status(token)).to.equal(401)
    let since = Date.now()
    await setOwn([issuerOf(tenants, 'own:')])
    note('an issuer of a logical cluster (kubectl included)', await until(token, 200, { since }))
    expect(await status(token, globex)).to.equal(401)
    await setOwn([issuerOf(tenants, '')])
    await until(token, 403)
    const asMaster = await tokenOf(tenants, { user: 'system:masters' })
    expect(await status(asMaster)).to.equal(401)
    await setOwn([{ ...issuerOf(tenants, ''), claimMappings: { username: { expression: 'claims.email' } } }])
    since = Date.now()
    const condition = [
      'get',
      'logicalcluster',
      'acme',
      '-o',
      'jsonpath={.status.conditions[?(@.type=="AuthenticationValid")].reason}',
    ]
    const said = async (): Promise<boolean> => (await kcp.admin.kubectl(condition)).stdout === 'IssuersInvalid'
    await waitFor(said, {
      what: 'condition AuthenticationValid is IssuersInvalid',
      deadlineMs: 30_000,
      intervalMs: 100,
    })
    note('a mistake in spec.authentication is told', Date.now() - since)
    expect(await status(token)).to.equal(401)
    await setOwn(null)
    const gone = async (): Promise<boolean> => (await kcp.admin.kubectl(condition)).stdout === ''
    await waitFor(gone, { what: 'the condition is gone', deadlineMs: 30_000, intervalMs: 100 })
    note('an issuer that was removed', await until(token, 401))
  })

  it('of keys counts with the first token of the new one; a withdrawn key for some minutes, or ten seconds after that token', async () => {
    tenants.setGroups('carol', ['viewers'])
    await setOwn([issuerOf(tenants, 'own:')])
    const before = await tokenOf(tenants, { user: 'carol' })
    await until(before, 200)
    await tenants.rotateKeys()
    const since = Date.now()
    const next = await tokenOf(tenants, { user: 'carol' })
    note('a new key, with its first token', await until(next, 200))
    note('the key before, once the new one was seen', await until(before, 401, { since, deadlineMs: 60_000 }))
    await tenants.rotateKeys()
    const rotated = Date.now()
    note(
      'a withdrawn key that nothing replaces',
      await until(next, 401, { since: rotated, deadlineMs: withdrawnMs + 60_000 }),
    )
    expect(Date.now() - rotated).to.be.lessThan(withdrawnMs + 15_000)
  })

  it('does not reach people who are signed in when their provider is down', async () => {
    const [one, other] = [await tokenOf(tenants, { user: 'carol' }), await tokenOf(tenants, { user: 'carol' })]
    await until(one, 200)
    await tenants.stop()
    const began = Date.now()
    while (Date.now() - began < 30_000) {
      expect(await status(one)).to.equal(200)
      await new Promise((resolve) => setTimeout(resolve, 500))
    }
    // Its first request: the keys are known.
    expect(await status(other)).to.equal(200)
  })

  it('never makes kcp ask an address that calls of tenants may not reach', async () => {
    const asked = provider.asked.get('/.well-known/openid-configuration') ?? 0
    const elsewhere = provider.url.replace('127.0.0.1', '127.0.0.2')
    await setOwn([
      {
        ...issuerOf(provider, 'own:'),
        issuer: { url: elsewhere, audiences: ['x'], certificateAuthority: provider.authority },
      },
    ])
    const header = Buffer.from('{"alg":"RS256","kid":"x"}').toString('base64url')
    const payload = Buffer.from(JSON.stringify({ iss: elsewhere, aud: 'x', sub: 'x', exp: 9e9 })).toString('base64url')
    for (let i = 0; i < 20; i++) expect(await status(`${header}.${payload}.AAAA`)).to.equal(401)
    expect(provider.asked.get('/.well-known/openid-configuration') ?? 0).to.equal(asked)
    const condition = [
      'get',
      'logicalcluster',
      'acme',
      '-o',
      'jsonpath={.status.conditions[?(@.type=="AuthenticationValid")].message}',
    ]
    const said = async (): Promise<boolean> => (await kcp.admin.kubectl(condition)).stdout.includes('cannot be read')
    await waitFor(said, { what: 'the condition says why', deadlineMs: 30_000, intervalMs: 200 })
    measured.push(`SSRF: ${(await kcp.admin.kubectl(condition)).stdout}`)
  })
})
