// `kcp login` against providers that lie or fail, and against pages that are not the provider's: nothing is printed for
// kubectl, and nothing is kept.
import { expect } from 'chai'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import http from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exportJWK, generateKeyPair, SignJWT, UnsecuredJWT, type CryptoKey, type JWK, type JWTPayload } from 'jose'
import { CertificateAuthority, kcpProgram } from '#test/support/index.ts'
import { runSigningIn, type Ended } from '#test/support/run-signing-in.ts'
import { SignInBrowser } from '#test/support/sign-in-browser.ts'

/** How the provider differs from a right one. */
interface Lies {
  readonly discovery?: object
  readonly claims?: JWTPayload
  readonly lasts?: string
  /** Sign with a key that the provider does not publish, or with none. */
  readonly signedBy?: 'a stranger' | 'nobody'
  readonly answer?: { readonly status: number; readonly body: object }
  /** Parameters of the way back, instead of a code. */
  readonly back?: Readonly<Record<string, string>>
}

class LyingProvider implements AsyncDisposable {
  lies: Lies = {}
  url = ''
  authority = ''
  /** Answers to refresh tokens. */
  refreshed = 0
  #server!: Server
  #keys!: { own: CryptoKey; other: CryptoKey; jwk: JWK }
  #asked = new URLSearchParams()

  static async start(): Promise<LyingProvider> {
    const made = new LyingProvider()
    const ca = await CertificateAuthority.create('authority of a liar')
    const { certificate, key } = await ca.issue({ commonName: 'liar', hosts: ['127.0.0.1'] })
    const [own, other] = await Promise.all([generateKeyPair('RS256'), generateKeyPair('RS256')])
    made.#keys = {
      own: own.privateKey,
      other: other.privateKey,
      jwk: { ...(await exportJWK(own.publicKey)), kid: 'one', alg: 'RS256', use: 'sig' },
    }
    made.authority = ca.certificate
    made.#server = createServer({ cert: certificate, key }, (request, response) => {
      const parts: Buffer[] = []
      request.on('data', (part: Buffer) => parts.push(part))
      request.on('end', () => void made.#answer(request.url ?? '', Buffer.concat(parts).toString(), response))
    })
    made.#server.listen(0, '127.0.0.1')
    await once(made.#server, 'listening')
    made.url = `https://127.0.0.1:${(made.#server.address() as AddressInfo).port}`
    return made
  }

  async stop(): Promise<void> {
    if (!this.#server.listening) return
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  async #answer(target: string, body: string, response: http.ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(target, this.url)
    const { lies, url } = this
    const json = (value: object, status = 200): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
    }
    if (pathname === '/.well-known/openid-configuration') {
      json({
        ...{ issuer: url, jwks_uri: `${url}/keys`, authorization_endpoint: `${url}/auth` },
        ...{ token_endpoint: `${url}/token`, id_token_signing_alg_values_supported: ['RS256'] },
        ...{ response_types_supported: ['code'], subject_types_supported: ['public'] },
        ...lies.discovery,
      })
      return
    }
    if (pathname === '/keys') {
      json({ keys: [this.#keys.jwk] })
      return
    }
    if (pathname === '/auth') {
      this.#asked = searchParams
      const back = new URL(searchParams.get('redirect_uri') ?? '')
      const parameters = { state: searchParams.get('state') ?? '', ...(lies.back ?? { code: 'abc' }) }
      for (const [name, value] of Object.entries(parameters)) back.searchParams.set(name, value)
      response.writeHead(302, { location: back.href }).end()
      return
    }
    const form = new URLSearchParams(body)
    if (lies.answer !== undefined) {
      json(lies.answer.body, lies.answer.status)
      return
    }
    const isRefresh = form.get('grant_type') === 'refresh_token'
    if (isRefresh) this.refreshed += 1
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    if (!isRefresh && challenge !== this.#asked.get('code_challenge')) {
      json({ error: 'invalid_grant' }, 400)
      return
    }
    json({
      ...{ access_token: 'opaque', token_type: 'Bearer', expires_in: 300, refresh_token: 'again' },
      id_token: await this.#idToken(),
    })
  }

  #idToken(): Promise<string> | string {
    const nonce = this.#asked.get('nonce') ?? ''
    const { claims, lasts = '5m', signedBy } = this.lies
    const payload = { iss: this.url, aud: 'kcp', sub: 'alice', nonce, ...claims }
    if (signedBy === 'nobody') return new UnsecuredJWT(payload).setIssuedAt().setExpirationTime(lasts).encode()
    return new SignJWT(payload)
      .setProtectedHeader({ alg: 'RS256', kid: 'one' })
      .setIssuedAt()
      .setExpirationTime(lasts)
      .sign(signedBy === 'a stranger' ? this.#keys.other : this.#keys.own)
  }
}

describe('kcp login refuses', function () {
  this.timeout(60_000)
  const folder = mkdtempSync(join(tmpdir(), 'kcp-login-refusals-'))
  let provider: LyingProvider

  beforeEach(async () => (provider = await LyingProvider.start()))
  afterEach(() => provider[Symbol.asyncDispose]())
  after(() => rmSync(folder, { recursive: true }))

  const login = async (
    cache: string,
    { more = [], open }: { more?: readonly string[]; open?: (link: string) => Promise<unknown> } = {},
  ): Promise<Ended> => {
    const args = [
      ...['login', `--oidc-issuer-url=${provider.url}`, '--oidc-client-id=kcp', '--skip-open-browser'],
      ...['--listen-address=127.0.0.1:0', `--token-cache-dir=${cache}`],
      ...[`--certificate-authority-data=${Buffer.from(provider.authority).toString('base64')}`, ...more],
    ]
    const usual = new SignInBrowser({ authority: provider.authority, username: '', password: '' })
    const opening = open ?? ((link: string) => usual.open(link))
    // The page may say that signing in has failed.
    const browser = { open: (link: string) => opening(link).catch(() => undefined) }
    return await runSigningIn(kcpProgram, args, { browser, home: folder })
  }
  const newCache = (): string => join(mkdtempSync(join(folder, 'cache-')), 'tokens')
  const kept = (cache: string): string[] => (existsSync(cache) ? readdirSync(cache) : [])

  const cases: { title: string; lies: Lies; says: RegExp }[] = [
    { title: 'an ID token for another sign-in (nonce)', lies: { claims: { nonce: 'other' } }, says: /nonce/ },
    { title: 'an ID token for another client', lies: { claims: { aud: 'other' } }, says: /"aud"/ },
    { title: 'an ID token of another issuer', lies: { claims: { iss: 'https://other.example' } }, says: /"iss"/ },
    { title: 'an ID token that has expired', lies: { lasts: '-1h' }, says: /"exp"/ },
    { title: 'an ID token that a stranger has signed', lies: { signedBy: 'a stranger' }, says: /signature/ },
    { title: 'an ID token that nobody has signed', lies: { signedBy: 'nobody' }, says: /alg/ },
    {
      title: 'a provider that says it is another one',
      lies: { discovery: { issuer: 'https://other.example' } },
      says: /is no OpenID provider that can be used: .*issuer/,
    },
    {
      title: 'an answer of another provider (RFC 9207)',
      lies: {
        discovery: { authorization_response_iss_parameter_supported: true },
        back: { code: 'abc', iss: 'https://other.example' },
      },
      says: /"iss" \(issuer\)/,
    },
    {
      title: 'to go on when the person does not agree',
      lies: { back: { error: 'access_denied', error_description: 'no, thanks' } },
      says: /the provider refused to sign in: access_denied: no, thanks/,
    },
    {
      title: 'an answer without an ID token, and says what may help',
      lies: { answer: { status: 200, body: { access_token: 'x', token_type: 'Bearer' } } },
      says: /no ID token; it may need another scope, or --oidc-use-access-token/,
    },
    {
      title: 'a provider that fails',
      lies: { answer: { status: 503, body: {} } },
      says: /the provider answers with status 503/,
    },
  ]
  for (const { title, lies, says } of cases)
    it(title, async () => {
      provider.lies = lies
      const cache = newCache()
      const { code, stdout, stderr } = await login(cache)
      expect([code, stdout, kept(cache)], stderr).to.deep.equal([1, '', []])
      expect(stderr.trim().split('\n').at(-1))
        .to.match(/^kcp: /)
        .and.to.match(says)
    })

  it('a certificate of an unknown authority, and names the flag', async () => {
    const other = await LyingProvider.start()
    const flag = `--certificate-authority-data=${Buffer.from(other.authority).toString('base64')}`
    const args = ['login', `--oidc-issuer-url=${provider.url}`, '--oidc-client-id=kcp', flag]
    await other[Symbol.asyncDispose]()
    const { code, stderr } = await runSigningIn(kcpProgram, [...args, `--token-cache-dir=${newCache()}`], {
      home: folder,
    })
    expect(code).to.equal(1)
    expect(stderr).to.match(/cannot reach https:.*--certificate-authority names the authority/)
  })

  it('answers with the state of another sign-in, and waits on for its own', async () => {
    const statuses: number[] = []
    const get = async (url: string): Promise<void> => {
      const { promise, resolve, reject } = Promise.withResolvers<number>()
      http
        .get(url, { agent: false }, (response) => {
          response.resume()
          resolve(response.statusCode ?? 0)
        })
        .on('error', reject)
      statuses.push(await promise)
    }
    const { code, stdout } = await login(newCache(), {
      open: async (link) => {
        const { origin } = new URL(link)
        for (const path of ['/?code=x&state=forged', '/?error=no', '/?code=x', '/other', '/start-guess'])
          await get(origin + path)
        await new SignInBrowser({ authority: provider.authority, username: '', password: '' }).open(link)
      },
    })
    expect(statuses).to.deep.equal([400, 400, 400, 404, 404])
    expect([code, (JSON.parse(stdout) as { kind: string }).kind]).to.deep.equal([0, 'ExecCredential'])
  })

  it('to wait longer than it is told', async () => {
    const { code, stdout, stderr } = await login(newCache(), {
      more: ['--authentication-timeout-sec=1'],
      open: () => Promise.resolve(),
    })
    expect([code, stdout], stderr).to.deep.equal([1, ''])
    expect(stderr).to.match(/nobody has signed in within 1 s \(--authentication-timeout-sec\)/)
  })

  it('to ask for a browser where only the provider is down, and uses a valid token without it', async () => {
    const [short, long] = [newCache(), newCache()]
    expect((await login(long)).code).to.equal(0)
    provider.lies = { lasts: '9s' }
    expect((await login(short)).code).to.equal(0)
    await provider.stop()
    const valid = await login(long)
    expect([valid.code, valid.links], valid.stderr).to.deep.equal([0, 0])
    const over = await login(short)
    expect([over.code, over.stdout, over.links], over.stderr).to.deep.equal([1, '', 0])
    expect(over.stderr).to.match(/^kcp: cannot reach https:\/\/127.0.0.1:\d+: connect ECONNREFUSED/)
  })

  it('no refresh: it takes the refresh token, and a person again where the provider wants one', async () => {
    const cache = newCache()
    expect((await login(cache)).links).to.equal(1)
    const second = await login(cache, { more: ['--force-refresh'] })
    expect([second.code, second.links, provider.refreshed], second.stderr).to.deep.equal([0, 0, 1])
    provider.lies = { answer: { status: 400, body: { error: 'invalid_grant' } } }
    const third = await login(cache, {
      more: ['--force-refresh'],
      open: async (link) => {
        provider.lies = {}
        await new SignInBrowser({ authority: provider.authority, username: '', password: '' }).open(link)
      },
    })
    expect([third.code, third.links], third.stderr).to.deep.equal([0, 1])
  })
})
