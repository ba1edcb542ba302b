// Real identity providers over TLS, for tests of signing in: `oidc-provider` (npm) in this process, and zitadel/oidc (Go).
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exportJWK, generateKeyPair } from 'jose'
import Provider, { type JWK } from 'oidc-provider'
import { CertificateAuthority } from './certificates.ts'
import { freePort } from './free-port.ts'
import { startProcess } from './process.ts'
import { ensurePrograms } from './programs.ts'

export interface IdentityProvider extends AsyncDisposable {
  readonly name: string
  /** The issuer. */
  readonly url: string
  /** PEM certificate of the authority of its certificate. */
  readonly authority: string
  /** The groups of a user, from the next token on. */
  setGroups(user: string, groups: readonly string[]): void
}

/** The client that both providers know; it has no secret. */
export const publicClient = 'kcp'
/** A client that oidc-provider knows besides: of another service of the company. */
export const otherClient = 'other'
/** The password of every user. */
export const userPassword = 'correct-horse'

export interface NodeProviderOptions {
  /** Seconds that an ID token is valid. Default an hour. */
  readonly idTokenSeconds?: number
}

/** `oidc-provider`: a certified implementation. It takes any name and password. */
export class NodeIdentityProvider implements IdentityProvider {
  readonly name = 'oidc-provider'
  readonly url: string
  readonly authority: string
  readonly #server: Server
  readonly #groups: Map<string, readonly string[]>
  readonly #options: NodeProviderOptions
  #provider: Provider
  /** How often each path was asked. */
  readonly asked = new Map<string, number>()

  private constructor(
    server: Server,
    authority: string,
    made: { provider: Provider; groups: Map<string, readonly string[]>; options: NodeProviderOptions },
  ) {
    this.#server = server
    this.authority = authority
    this.url = originOf(server)
    this.#provider = made.provider
    this.#groups = made.groups
    this.#options = made.options
    server.on('request', (request, response) => {
      const path = request.url?.split('?')[0] ?? ''
      this.asked.set(path, (this.asked.get(path) ?? 0) + 1)
      void this.#provider.callback()(request, response)
    })
  }

  static async start(options: NodeProviderOptions = {}): Promise<NodeIdentityProvider> {
    const ca = await CertificateAuthority.create('authority of oidc-provider')
    const { certificate, key } = await ca.issue({ commonName: 'oidc-provider', hosts: ['127.0.0.1'] })
    const server = createServer({ cert: certificate, key })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const groups = new Map<string, readonly string[]>()
    const provider = providerOf(originOf(server), groups, options, await newKey())
    return new NodeIdentityProvider(server, ca.certificate, { provider, groups, options })
  }

  setGroups(user: string, groups: readonly string[]): void {
    this.#groups.set(user, groups)
  }

  /** Signs with another key from now on, and publishes that one alone. Everybody signs in again. */
  async rotateKeys(): Promise<void> {
    this.#provider = providerOf(this.url, this.#groups, this.#options, await newKey())
  }

  /** Stops to listen; `start` again is not possible. */
  async stop(): Promise<void> {
    if (!this.#server.listening) return
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }
}

const originOf = (server: Server): string => `https://127.0.0.1:${(server.address() as AddressInfo).port}`

async function newKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  return { ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig' }
}

function providerOf(
  issuer: string,
  groups: ReadonlyMap<string, readonly string[]>,
  { idTokenSeconds = 3600 }: NodeProviderOptions,
  key: JWK,
): Provider {
  const device = 'urn:ietf:params:oauth:grant-type:device_code'
  return new Provider(issuer, {
    jwks: { keys: [key] },
    clients: [publicClient, otherClient].map((id) => ({
      ...{ client_id: id, application_type: 'native', token_endpoint_auth_method: 'none' },
      redirect_uris: ['http://localhost'],
      grant_types: ['authorization_code', 'refresh_token', device],
      response_types: ['code'],
    })),
    features: { deviceFlow: { enabled: true }, devInteractions: { enabled: true } },
    // Claims of scopes are in the ID token, not only in the answer of userinfo.
    conformIdTokenClaims: false,
    claims: { openid: ['sub', 'groups'] },
    ttl: {
      ...{ IdToken: idTokenSeconds, AccessToken: 3600, RefreshToken: 86_400, Session: 86_400, Grant: 86_400 },
      ...{ Interaction: 600, DeviceCode: 600, AuthorizationCode: 60 },
    },
    issueRefreshToken: () => Promise.resolve(true),
    findAccount: (_context, id) => ({
      accountId: id,
      claims: () => Promise.resolve({ sub: id, groups: [...(groups.get(id) ?? [])] }),
    }),
    cookies: { keys: ['of the test'] },
  })
}

/** The example server of zitadel/oidc: another implementation, in another language. */
export class GoIdentityProvider implements IdentityProvider {
  readonly name = 'zitadel/oidc'
  readonly url: string
  readonly authority: string
  readonly #users = new Map<string, readonly string[]>()
  readonly #file: string
  readonly #stack: AsyncDisposableStack

  private constructor(url: string, authority: string, { file, stack }: { file: string; stack: AsyncDisposableStack }) {
    this.url = url
    this.authority = authority
    this.#file = file
    this.#stack = stack
  }

  static async start(): Promise<GoIdentityProvider> {
    await using stack = new AsyncDisposableStack()
    const programs = await ensurePrograms(['zitadel-oidc'])
    const ca = await CertificateAuthority.create('authority of zitadel')
    const { certificate, key } = await ca.issue({ commonName: 'zitadel', hosts: ['127.0.0.1'] })
    const folder = mkdtempSync(join(tmpdir(), 'kcp-zitadel-'))
    stack.defer(() => rmSync(folder, { recursive: true, force: true }))
    const path = (name: string, text: string): string => {
      writeFileSync(join(folder, name), text)
      return join(folder, name)
    }
    const address = `127.0.0.1:${await freePort()}`
    const [users, logFile] = [path('users.json', '{}'), path('log', '')]
    const files = ['-cert', path('tls.crt', certificate), '-key', path('tls.key', key), '-users', users]
    stack.use(
      await startProcess({
        ...{ name: 'zitadel-oidc', command: programs['zitadel-oidc'], logFile },
        args: ['-listen', address, '-client-id', publicClient, ...files],
        ready: () => readFileSync(logFile, 'utf8').includes(address),
      }),
    )
    return new GoIdentityProvider(`https://${address}`, ca.certificate, { file: users, stack: stack.move() })
  }

  setGroups(user: string, groups: readonly string[]): void {
    this.#users.set(user, groups)
    const all = [...this.#users].map(([name, of]) => [name, { password: userPassword, groups: of }])
    writeFileSync(this.#file, JSON.stringify(Object.fromEntries(all)))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#stack.disposeAsync()
  }
}
