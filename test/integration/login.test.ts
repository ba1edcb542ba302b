// `kcp login`: kubectl signs in with two independent identity providers, through the program as people run it.
import { expect } from 'chai'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { ensurePrograms, kcpProgram, runKcp } from '#test/support/index.ts'
import {
  GoIdentityProvider,
  NodeIdentityProvider,
  publicClient,
  userPassword,
  type IdentityProvider,
} from '#test/support/identity-provider.ts'
import { runSigningIn, type Ended } from '#test/support/run-signing-in.ts'
import { SignInBrowser } from '#test/support/sign-in-browser.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

/** An AuthenticationConfiguration that trusts these providers. */
function trustOf(providers: readonly IdentityProvider[]): string {
  return JSON.stringify({
    ...{ apiVersion: 'apiserver.config.k8s.io/v1', kind: 'AuthenticationConfiguration' },
    jwt: providers.map(({ url, authority }) => ({
      issuer: { url, audiences: [publicClient], certificateAuthority: authority },
      claimMappings: {
        username: { claim: 'sub', prefix: 'oidc:' },
        groups: { claim: 'groups', prefix: 'oidc:' },
      },
    })),
  })
}

describe('kcp login', function () {
  this.timeout(120_000)
  const stack = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'kcp-login-'))
  stack.defer(() => rmSync(folder, { recursive: true, force: true }))
  let providers: IdentityProvider[]
  let kcp: KcpInstance
  let acme: Tenant
  let kubectl: string

  before(async () => {
    kubectl = (await ensurePrograms(['kubectl'])).kubectl
    providers = [stack.use(await NodeIdentityProvider.start()), stack.use(await GoIdentityProvider.start())]
    const file = join(folder, 'sign-in.yaml')
    writeFileSync(file, trustOf(providers))
    kcp = stack.use(await startInstance(['--authentication-config', file]))
    acme = await kcp.tenant('acme')
    await acme.kubectl(['create', 'clusterrolebinding', 'viewers', '--clusterrole=view', '--group=oidc:viewers'])
  })
  after(() => stack.disposeAsync())

  const run = (command: string, args: readonly string[], browser?: SignInBrowser): Promise<Ended> =>
    runSigningIn(command, args, { home: folder, ...(browser && { browser }) })

  const browserOf = ({ authority }: IdentityProvider, username = 'alice'): SignInBrowser =>
    new SignInBrowser({ authority, username, password: userPassword })

  const argsOf = ({ url, authority }: IdentityProvider, cache: string, more: readonly string[] = []): string[] => [
    ...['login', `--oidc-issuer-url=${url}`, `--oidc-client-id=${publicClient}`],
    `--certificate-authority-data=${Buffer.from(authority).toString('base64')}`,
    ...['--listen-address=127.0.0.1:0', '--skip-open-browser', `--token-cache-dir=${cache}`, ...more],
  ]

  /** A kubeconfig whose user signs in with the provider. */
  const kubeconfigOf = (provider: IdentityProvider, cache: string, more: readonly string[] = []): string => {
    const config = readFileSync(acme.kubeconfig, 'utf8')
    const server = /server: (\S+)/.exec(config)?.[1] ?? ''
    const ca = /certificate-authority-data: (\S+)/.exec(config)?.[1] ?? ''
    const file = join(mkdtempSync(join(folder, 'kubeconfig-')), 'config')
    const exec = {
      ...{ apiVersion: 'client.authentication.k8s.io/v1', interactiveMode: 'IfAvailable', command: kcpProgram },
      args: argsOf(provider, cache, more),
    }
    const named = { name: 'acme' }
    const text = JSON.stringify({
      ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'acme' },
      clusters: [{ ...named, cluster: { server, 'certificate-authority-data': ca } }],
      users: [{ ...named, user: { exec } }],
      contexts: [{ ...named, context: { cluster: 'acme', user: 'acme' } }],
    })
    writeFileSync(file, text)
    return file
  }
  const newCache = (): string => join(mkdtempSync(join(folder, 'cache-')), 'tokens')
  const whoami = ['auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username} {.status.userInfo.groups}']

  it('has a kubeconfig without credentials, by the issuer of the logical cluster', async () => {
    const [{ url, authority }] = providers as [IdentityProvider]
    const issuer = { url, audiences: [publicClient], certificateAuthority: authority }
    const jwt = [{ issuer, claimMappings: { username: { claim: 'sub', prefix: '' } } }]
    const patch = JSON.stringify({ spec: { authentication: { jwt } } })
    await kcp.admin.kubectl(['patch', 'logicalcluster', 'acme', '--type=merge', '-p', patch])
    const { stdout } = await runKcp(['kubeconfig', 'acme', '--login', '--root-dir', kcp.rootDir])
    expect(stdout).to.not.include('client-key-data')
    const { users } = parse(stdout) as { users: { user: { exec: { command: string; args: string[] } } }[] }
    const { command, args = [] } = users[0]?.user.exec ?? {}
    expect(command).to.equal('kcp')
    expect(args).to.deep.equal([
      ...['login', `--oidc-issuer-url=${url}`, `--oidc-client-id=${publicClient}`],
      `--certificate-authority-data=${Buffer.from(authority).toString('base64')}`,
    ])
    const listen = ['--listen-address=127.0.0.1:0', '--skip-open-browser', `--token-cache-dir=${newCache()}`]
    const signedIn = await run(kcpProgram, [...args, ...listen], browserOf(providers[0]!))
    expect(signedIn.code, signedIn.stderr).to.equal(0)
    const none = await runKcp(['kubeconfig', 'root', '--login', '--root-dir', kcp.rootDir], { expectCode: 'any' })
    expect([none.code, none.stdout]).to.deep.equal([1, ''])
    await kcp.admin.kubectl([
      'patch',
      'logicalcluster',
      'acme',
      '--type=merge',
      '-p',
      '{"spec":{"authentication":null}}',
    ])
    const missing = await runKcp(['kubeconfig', 'acme', '--login', '--root-dir', kcp.rootDir], { expectCode: 2 })
    expect(missing.stderr).to.match(/which identity provider\? give --oidc-issuer-url URL: .* has 0/)
  })

  for (const [index, name] of ['oidc-provider', 'zitadel/oidc'].entries()) {
    describe(`with ${name}`, () => {
      const provider = (): IdentityProvider => providers[index]!

      it('signs kubectl in by the browser, once: the token is kept in a file of the person', async () => {
        provider().setGroups('alice', ['viewers', 'devs'])
        const cache = newCache()
        const kubeconfig = kubeconfigOf(provider(), cache)
        const browser = browserOf(provider())
        const first = await run(kubectl, ['--kubeconfig', kubeconfig, ...whoami], browser)
        expect(first.stdout, first.stderr).to.equal('oidc:alice ["oidc:viewers","oidc:devs","system:authenticated"]')
        expect(first.links).to.equal(1)
        const second = await run(kubectl, ['--kubeconfig', kubeconfig, 'get', 'pods'])
        expect([second.code, second.stderr]).to.deep.equal([0, 'No resources found in default namespace.\n'])
        expect(statSync(cache).mode & 0o777).to.equal(0o700)
        expect(readdirSync(cache).length).to.equal(1)
        for (const file of readdirSync(cache)) expect(statSync(join(cache, file)).mode & 0o777).to.equal(0o600)
      })

      it('signs in by the device flow', async () => {
        provider().setGroups('bob', ['viewers'])
        const kubeconfig = kubeconfigOf(provider(), newCache(), ['--grant-type=device-code'])
        const { stdout, stderr } = await run(
          kubectl,
          ['--kubeconfig', kubeconfig, ...whoami],
          browserOf(provider(), 'bob'),
        )
        expect(stdout, stderr).to.equal('oidc:bob ["oidc:viewers","system:authenticated"]')
        expect(stderr).to.match(/^Code: \S+\n/)
      })

      it('gets a new token with the refresh token, with the groups of now', async () => {
        provider().setGroups('carol', ['viewers'])
        const args = argsOf(provider(), newCache(), ['--oidc-extra-scope=offline_access', ...consent])
        const first = await run(kcpProgram, args, browserOf(provider(), 'carol'))
        expect(groupsOf(first.stdout), first.stderr).to.deep.equal(['viewers'])
        provider().setGroups('carol', ['devs'])
        const kept = await run(kcpProgram, args)
        expect(groupsOf(kept.stdout)).to.deep.equal(['viewers'])
        const next = await run(kcpProgram, [...args, '--force-refresh'])
        expect([groupsOf(next.stdout), next.links], next.stderr).to.deep.equal([['devs'], 0])
      })

      it('signs in once for commands that run at the same time', async () => {
        const args = argsOf(provider(), newCache())
        const browser = browserOf(provider())
        const all = await Promise.all([1, 2, 3, 4].map(() => run(kcpProgram, args, browser)))
        expect(all.map(({ code }) => code)).to.deep.equal([0, 0, 0, 0])
        expect(all.reduce((sum, { links }) => sum + links, 0)).to.equal(1)
        expect(new Set(all.map(({ stdout }) => stdout)).size).to.equal(1)
      })
    })
  }
})

/** Providers give refresh tokens for offline_access only to people who agree (OpenID Connect Core, section 11). */
const consent = ['--oidc-auth-request-extra-params=prompt=consent']

function groupsOf(credential: string): unknown {
  const { status } = JSON.parse(credential) as { status: { token: string } }
  const [, payload = ''] = status.token.split('.')
  return (JSON.parse(Buffer.from(payload, 'base64url').toString()) as { groups: unknown }).groups
}
