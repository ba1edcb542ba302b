// Sign-in with identity providers: tokens that are signed by a real provider's keys over TLS, and what is refused.
import { expect } from 'chai'
import { createServer, request as httpsRequest, type Server } from 'node:https'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { exportJWK, generateKeyPair, SignJWT, UnsecuredJWT, type CryptoKey, type JWK, type JWTPayload } from 'jose'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { findCondition, type LogicalCluster } from '#crds/index.ts'
import { followConfiguration, parseConfiguration, type InstallationSignIn } from '#virtualapi/auth/sign-in/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import { CertificateAuthority } from '#test/support/certificates.ts'
import { startServedApi, untilTrue, type ServedApi, type ServedTenant } from './served-api.ts'

interface Signing {
  readonly id: string
  readonly key: CryptoKey
  readonly jwk: JWK
}

async function newKey(id: string, algorithm = 'ES256'): Promise<Signing> {
  const { privateKey, publicKey } = await generateKeyPair(algorithm, { extractable: true })
  return { id, key: privateKey, jwk: { ...(await exportJWK(publicKey)), kid: id, alg: algorithm, use: 'sig' } }
}

/** An OpenID provider: discovery and keys over TLS. */
class Provider implements AsyncDisposable {
  keys: Signing[] = []
  asked = 0
  /** Answers every question with 503. */
  isBroken = false
  url = ''
  readonly authority: string
  readonly #server: Server

  private constructor(server: Server, authority: string) {
    this.#server = server
    this.authority = authority
  }

  static async start(): Promise<Provider> {
    const ca = await CertificateAuthority.create('authority of the provider')
    const { certificate, key } = await ca.issue({ commonName: 'provider', hosts: ['127.0.0.1'] })
    const server = createServer({ cert: certificate, key })
    const provider = new Provider(server, ca.certificate)
    server.on('request', ({ url }, response) => {
      provider.asked += 1
      const documents: Record<string, unknown> = {
        '/.well-known/openid-configuration': { issuer: provider.url, jwks_uri: `${provider.url}/keys` },
        '/keys': { keys: provider.keys.map(({ jwk }) => jwk) },
      }
      const document = documents[url ?? '']
      response.writeHead(provider.isBroken ? 503 : document === undefined ? 404 : 200, {
        'content-type': 'application/json',
      })
      response.end(JSON.stringify(document ?? {}))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    provider.url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
    provider.keys = [await newKey('first')]
    return provider
  }

  token(
    claims: JWTPayload,
    { signing = this.keys[0], lasts = '5m' }: { signing?: Signing; lasts?: string } = {},
  ): Promise<string> {
    if (signing === undefined) throw new Error('the provider has no key')
    return new SignJWT({ iss: this.url, aud: 'kcp', sub: 'alice', ...claims })
      .setProtectedHeader({ alg: 'ES256', kid: signing.id })
      .setExpirationTime(lasts)
      .sign(signing.key)
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#server.listening ? this.stop() : Promise.resolve()
  }
}

describe('sign-in with an identity provider', function () {
  this.timeout(30_000)
  const stack = new AsyncDisposableStack()
  let provider: Provider
  let served: ServedApi
  let acme: ServedTenant
  let globex: ServedTenant
  let configuration: InstallationSignIn = { issuers: [] }
  /** How far the server's clock is ahead, milliseconds. */
  let ahead = 0
  const clock = { now: () => Date.now(), monotonic: () => performance.now() + ahead }

  const trust = (more: object = {}): string =>
    JSON.stringify({
      ...{ apiVersion: 'apiserver.config.k8s.io/v1', kind: 'AuthenticationConfiguration' },
      jwt: [
        {
          issuer: { url: provider.url, audiences: ['kcp'], certificateAuthority: provider.authority },
          claimMappings: {
            username: { claim: 'sub', prefix: 'oidc:' },
            groups: { claim: 'groups', prefix: 'oidc:' },
            extra: [{ key: 'example.com/team', valueExpression: 'claims.?team.orValue("none")' }],
          },
          claimValidationRules: [{ expression: '!has(claims.blocked) || !claims.blocked', message: 'is blocked' }],
          userValidationRules: [{ expression: '!user.username.startsWith("oidc:system:")', message: 'is reserved' }],
          ...more,
        },
      ],
    })

  before(async () => {
    provider = stack.use(await Provider.start())
    configuration = parseConfiguration(trust())
    served = stack.use(
      await startServedApi({ signIn: () => configuration, clock, egress: { allow: ['127.0.0.1/32'] } }),
    )
    acme = await served.tenant('acme')
    globex = await served.tenant('globex')
    for (const tenant of [acme, globex]) {
      const rbac = 'rbac.authorization.k8s.io'
      const binding = {
        ...{ apiVersion: `${rbac}/v1`, kind: 'ClusterRoleBinding', metadata: { name: 'viewers' } },
        roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'view' },
        subjects: [{ apiGroup: rbac, kind: 'Group', name: 'oidc:viewers' }],
      }
      await tenant.request('POST', `${tenant.base}/apis/${rbac}/v1/clusterrolebindings`, { body: binding })
    }
  })
  after(() => stack.disposeAsync())

  /** A request without a certificate. */
  const send = async (
    path: string,
    { token, body }: { token?: string; body?: string } = {},
  ): Promise<{ status: number; text: string }> => {
    const headers = { ...(token && { authorization: `Bearer ${token}` }), 'content-type': 'application/json' }
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>()
    const method = body === undefined ? 'GET' : 'POST'
    const options = { host: '127.0.0.1', port: served.port, path, method, headers, rejectUnauthorized: false }
    const outgoing = httpsRequest(options, (response) => {
      const parts: Buffer[] = []
      response.on('data', (part: Buffer) => parts.push(part))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(parts).toString() }))
    })
    outgoing.on('error', reject)
    outgoing.end(body)
    return await promise
  }
  const as = (token: string, tenant = acme): Promise<{ status: number }> =>
    send(`${tenant.base}/api/v1/namespaces/default/pods`, { token })
  const who = async (token: string, tenant = acme): Promise<Record<string, unknown>> => {
    const body = JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' })
    const path = `${tenant.base}/apis/authentication.k8s.io/v1/selfsubjectreviews`
    const { text } = await send(path, { token, body })
    return ((JSON.parse(text) as KubeObject)['status'] as { userInfo: Record<string, unknown> }).userInfo
  }

  it('gives the user names, groups and extra fields as the configuration says, in all logical clusters', async () => {
    const token = await provider.token({ groups: ['viewers', 'devs'], jti: 'a1', team: 'red' })
    for (const tenant of [acme, globex]) expect((await as(token, tenant)).status).to.equal(200)
    expect(await who(token)).to.deep.include({
      username: 'oidc:alice',
      groups: ['oidc:viewers', 'oidc:devs', 'system:authenticated'],
      extra: { 'authentication.kubernetes.io/credential-id': ['JTI=a1'], 'example.com/team': ['red'] },
    })
    expect((await as(await provider.token({ groups: ['devs'] }))).status).to.equal(403)
  })

  const refused: { title: string; token: () => Promise<string> }[] = [
    { title: 'has expired', token: () => provider.token({ groups: ['viewers'] }, { lasts: '-1s' }) },
    { title: 'is for another audience', token: () => provider.token({ aud: 'other', groups: ['viewers'] }) },
    {
      title: 'is of another issuer',
      token: () => provider.token({ iss: 'https://other.example', groups: ['viewers'] }),
    },
    { title: 'breaks a rule about claims', token: () => provider.token({ blocked: true, groups: ['viewers'] }) },
    { title: 'breaks a rule about users', token: () => provider.token({ sub: 'system:admin' }) },
    { title: 'has groups that are no texts', token: () => provider.token({ groups: [1] }) },
    { title: 'has no name', token: () => provider.token({ sub: '' }) },
    {
      title: 'is signed by nobody',
      token: () =>
        Promise.resolve(
          new UnsecuredJWT({ iss: provider.url, aud: 'kcp', sub: 'alice' }).setExpirationTime('5m').encode(),
        ),
    },
    {
      title: 'is signed with the public key as a shared secret',
      token: () =>
        new SignJWT({ iss: provider.url, aud: 'kcp', sub: 'alice' })
          .setProtectedHeader({ alg: 'HS256', kid: 'first' })
          .setExpirationTime('5m')
          .sign(new TextEncoder().encode(JSON.stringify(provider.keys[0]?.jwk))),
    },
    {
      title: 'is signed by another key of the same name',
      token: async () => provider.token({}, { signing: await newKey('first') }),
    },
  ]
  for (const { title, token } of refused)
    it(`refuses a token that ${title}`, async () => expect((await as(await token())).status).to.equal(401))

  it('follows the file, and goes on with the configuration before where the new one has an error', async () => {
    const file = join(mkdtempSync(join(tmpdir(), 'kcp-sign-in-')), 'sign-in.yaml')
    writeFileSync(file, trust())
    const life = new AbortController()
    const followed = await followConfiguration(file, {
      ...{ disallowed: [], log: silentLogger, signal: life.signal, everyMs: 20 },
    })
    const before = followed.current()
    writeFileSync(file, trust({ issuer: { url: 'http://x' } }))
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(followed.current()).to.equal(before)
    writeFileSync(file, trust({ userValidationRules: [] }))
    await untilTrue(() => followed.current() !== before, 'the new configuration counts')
    expect(followed.current().issuers[0]?.userRules).to.deep.equal([])
    life.abort()
    rmSync(dirname(file), { recursive: true })
  })

  it('keeps a configuration out that kube-apiserver would refuse, with its words', () => {
    expect(() => parseConfiguration(trust({ claimMappings: { username: { expression: 'claims.email' } } }))).to.throw(
      /claims.email_verified must be used in claimMappings.username.expression/,
    )
    expect(() => parseConfiguration(trust({ issuer: { url: 'http://x', audiences: [] } }))).to.throw(
      /jwt\[0\].issuer.url: Invalid value: "http:\/\/x": URL scheme must be https; jwt\[0\].issuer.audiences: Required value/,
    )
  })

  describe('condition AuthenticationValid', () => {
    const gvr = { group: 'kcp.dev', version: 'v1alpha1', resource: 'logicalclusters' } as const
    let tenant: ServedTenant
    let own: Provider
    const trustOf = (more: object = {}): object => ({
      issuer: { url: own.url, audiences: ['kcp'], certificateAuthority: own.authority },
      claimMappings: { username: { claim: 'sub', prefix: '' } },
      ...more,
    })
    const setIssuers = async (jwt: readonly object[]): Promise<void> => {
      const patch = { spec: { authentication: { jwt } } }
      await served.root.patch(gvr, { name: tenant.name }, 'merge', patch, { signal: served.signal })
    }
    const read = async (): Promise<LogicalCluster> =>
      served.root.get<LogicalCluster>(gvr, { name: tenant.name }, { signal: served.signal })
    const untilReason = async (reason: string): Promise<string> => {
      const found = async () => findCondition(await read(), 'AuthenticationValid')
      await untilTrue(
        async () => (await found())?.reason === reason,
        `condition AuthenticationValid has ${reason}`,
        15_000,
      )
      return (await found())?.message ?? ''
    }
    before(async () => {
      own = stack.use(await Provider.start())
      tenant = await served.tenant('told')
    })

    it('says in the words of kube-apiserver why no issuer counts, and that they count when it is mended', async () => {
      const username = { expression: 'claims.email' }
      await setIssuers([
        trustOf(),
        trustOf({ issuer: { url: 'https://b.example', audiences: ['b'] }, claimMappings: { username } }),
      ])
      expect(await untilReason('IssuersInvalid')).to.match(
        /^no issuer of spec.authentication counts: spec.authentication.jwt\[1\].claimMappings.username.expression: Invalid value: "claims.email": claims.email_verified must be used/,
      )
      expect((await as(await own.token({}), tenant)).status).to.equal(401)
      await setIssuers([trustOf()])
      expect(await untilReason('Valid')).to.equal('tokens of the issuers count')
      expect((await as(await own.token({}), tenant)).status).to.equal(403)
    })

    it('says why keys cannot be read, with few writes however many tokens come, and until when they count', async () => {
      ahead += 11_000
      own.isBroken = true
      const before = (await read()).metadata.resourceVersion
      const forged = await newKey('forged')
      const asked = own.asked
      for (let n = 0; n < 30; n++) await as(await own.token({ n }, { signing: forged }), tenant)
      expect(own.asked - asked).to.equal(1)
      expect(await untilReason('KeysUnreadable')).to.match(
        /^the keys of "https:\/\/127.0.0.1:\d+" cannot be read: https:.* answers with status 503; the keys that are known count until 20\d\d-/,
      )
      expect(Number((await read()).metadata.resourceVersion) - Number(before)).to.be.at.most(3)
      expect((await as(await own.token({ n: 'known' }), tenant)).status).to.equal(403)
      own.isBroken = false
      ahead += 11_000
      await as(await own.token({ n: 'last' }, { signing: forged }), tenant)
      await untilReason('Valid')
    })
  })

  describe('of a logical cluster', () => {
    let own: Provider
    const logicalClusters = { group: 'kcp.dev', version: 'v1alpha1', resource: 'logicalclusters' } as const
    const trustOwn = async (url: string): Promise<void> => {
      const jwt = [
        {
          issuer: { url, audiences: ['kcp'], certificateAuthority: own.authority },
          claimMappings: { username: { claim: 'sub', prefix: '' }, groups: { claim: 'groups', prefix: '' } },
        },
      ]
      const patch = { spec: { authentication: { jwt } } }
      await served.root.patch(logicalClusters, { name: 'acme' }, 'merge', patch, { signal: served.signal })
      const isKnown = (): boolean => served.api.directory.byId(acme.id)?.authentication?.[0]?.issuer.url === url
      await untilTrue(isKnown, 'the server knows the provider')
    }
    before(async () => {
      own = stack.use(await Provider.start())
      await trustOwn(own.url)
    })

    it('gives users there and nowhere else, and neither names nor groups of Kubernetes', async () => {
      const token = await own.token({ groups: ['oidc:viewers', 'system:masters'] })
      expect(await who(token)).to.deep.include({ username: 'alice', groups: ['oidc:viewers', 'system:authenticated'] })
      expect((await as(token)).status).to.equal(200)
      expect((await as(token, globex)).status).to.equal(401)
      expect((await send('/clusters/*/api/v1/pods', { token })).status).to.be.oneOf([401, 403])
      expect((await as(await own.token({ sub: 'system:admin' }))).status).to.equal(401)
    })

    it('is not asked at addresses that no call of a tenant may reach', async () => {
      const metadata = own.url.replace('127.0.0.1', '127.0.0.2')
      await trustOwn(metadata)
      const before = own.asked
      const answer = await as(await own.token({ iss: metadata, groups: ['oidc:viewers'] }))
      expect(answer.status).to.equal(401)
      expect(own.asked).to.equal(before)
    })
  })

  it('takes a new key of the provider at once, and asks for an unknown one at most every ten seconds', async () => {
    const next = await newKey('second')
    provider.keys = [next]
    const before = provider.asked
    ahead += 11_000
    expect((await as(await provider.token({ groups: ['viewers'] }, { signing: next }))).status).to.equal(200)
    const forged = await newKey('forged')
    for (let i = 0; i < 20; i++)
      expect((await as(await provider.token({ n: i }, { signing: forged }))).status).to.equal(401)
    expect(provider.asked - before).to.be.lessThan(5)
  })

  it('keeps users signed in while the provider does not answer', async () => {
    await provider.stop()
    expect((await as(await provider.token({ groups: ['viewers'], n: 'after' }))).status).to.equal(200)
  })

  it('refuses clients without credentials, except at paths that are named', async () => {
    configuration = { ...configuration, anonymous: { enabled: true, paths: ['/livez'] } }
    expect((await send(`${acme.base}/version`)).status).to.equal(401)
    expect((await send('/livez')).status).to.equal(200)
    configuration = { issuers: configuration.issuers }
    expect((await send(`${acme.base}/version`)).status).to.equal(200)
  })
})
