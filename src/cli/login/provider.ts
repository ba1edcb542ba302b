// An identity provider: its endpoints by OpenID Connect Discovery, and the tokens that it gives for a grant, verified with
// its keys.
import { createLocalJWKSet, decodeJwt, jwtVerify, type JSONWebKeySet } from 'jose'
import * as oauth from 'oauth4webapi'
import { parseJsonText } from '#apimachinery/json/index.ts'
import { ExitError, UsageError } from '#cli/process/exit-error.ts'
import { providerFetch, ProviderUnreachable, type ProviderConnection, type ProviderFetch } from './provider-fetch.ts'

/** The client that an identity provider knows, and what it asks for. */
export interface ClientOptions {
  readonly issuerUrl: string
  readonly clientId: string
  readonly clientSecret?: string
  /** Besides `openid`. */
  readonly extraScopes: readonly string[]
  /** Send the access token to Kubernetes, not the ID token. */
  readonly useAccessToken: boolean
  readonly connection: ProviderConnection
}

/** What a person is signed in with. */
export interface Tokens {
  /** The token for Kubernetes. */
  readonly token: string
  /** When it expires, milliseconds since 1970. */
  readonly expiresMs: number
  readonly refreshToken?: string
}

/** The provider has refused a grant: another way to sign in may work. */
export class GrantRefused extends ExitError {}

/** `auto`: S256, unless the provider lists methods without it. */
export type PkceMethod = 'auto' | 'no' | 'S256'

export class Provider {
  readonly server: oauth.AuthorizationServer
  readonly client: oauth.Client
  readonly scope: string
  readonly #options: ClientOptions
  readonly #fetch: ProviderFetch

  private constructor(server: oauth.AuthorizationServer, options: ClientOptions, fetch: ProviderFetch) {
    this.server = server
    this.client = { client_id: options.clientId }
    this.scope = [...new Set(['openid', ...options.extraScopes])].join(' ')
    this.#options = options
    this.#fetch = fetch
  }

  /** Reads the discovery document. Rejects with ProviderUnreachable, or ExitError if it is not that of the issuer. */
  static async discover(options: ClientOptions, signal: AbortSignal): Promise<Provider> {
    const { issuerUrl } = options
    const issuer = URL.canParse(issuerUrl) ? new URL(issuerUrl) : undefined
    if (issuer?.protocol !== 'https:')
      throw new UsageError(`--oidc-issuer-url must be an https URL, as Kubernetes wants it, not "${issuerUrl}"`)
    const fetch = providerFetch(options.connection, signal)
    return await told(`${issuerUrl} is no OpenID provider that can be used`, async () => {
      const response = await oauth.discoveryRequest(issuer, { [oauth.customFetch]: fetch })
      // A gateway in front of the provider answers in its place.
      if (response.status >= 500) throw new ProviderUnreachable(`${issuerUrl} answers with status ${response.status}`)
      return new Provider(await oauth.processDiscoveryResponse(issuer, response), options, fetch)
    })
  }

  /** Options of every request. */
  get requests(): { [oauth.customFetch]: ProviderFetch } {
    return { [oauth.customFetch]: this.#fetch }
  }

  /** How the client proves itself. A secret goes by Basic, unless the provider only takes it in the form. */
  get authentication(): oauth.ClientAuth {
    const { clientSecret } = this.#options
    if (clientSecret === undefined) return oauth.None()
    const methods = this.server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    const isBasic = methods.includes('client_secret_basic') || !methods.includes('client_secret_post')
    return isBasic ? oauth.ClientSecretBasic(clientSecret) : oauth.ClientSecretPost(clientSecret)
  }

  usesPkce(method: PkceMethod): boolean {
    if (method !== 'auto') return method === 'S256'
    return this.server.code_challenge_methods_supported?.includes('S256') !== false
  }

  /**
   * The tokens of an answer of the token endpoint. `process` checks it and the claims of its ID token. Rejects with
   * GrantRefused, with the provider's reason.
   */
  async tokensOf(
    response: Response,
    process: (
      server: oauth.AuthorizationServer,
      client: oauth.Client,
      response: Response,
    ) => Promise<oauth.TokenEndpointResponse>,
  ): Promise<Tokens> {
    if (response.status >= 500) throw new ProviderUnreachable(`the provider answers with status ${response.status}`)
    return await told('the provider refused to sign in', async () => {
      const answer = await process(this.server, this.client, response)
      const { id_token: idToken, access_token: accessToken, refresh_token: refreshToken } = answer
      if (idToken !== undefined) await oauth.validateApplicationLevelSignature(this.server, response, this.requests)
      const found = this.#options.useAccessToken ? await this.#accessToken(accessToken) : idTokenOf(idToken)
      return { ...found, ...(refreshToken !== undefined && { refreshToken }) }
    })
  }

  /** Access tokens have any audience: only Kubernetes can judge it. */
  async #accessToken(token: string): Promise<Omit<Tokens, 'refreshToken'>> {
    const { jwks_uri: keysUrl, issuer } = this.server
    if (keysUrl === undefined) throw new ExitError('the provider names no keys (jwks_uri)')
    const keys = parseJsonText(await (await this.#fetch(keysUrl)).text()) as unknown as JSONWebKeySet
    const { payload } = await jwtVerify(token, createLocalJWKSet(keys), { issuer, requiredClaims: ['exp'] }).catch(
      (error: unknown) => {
        throw new ExitError(`the access token cannot be used with Kubernetes: ${(error as Error).message}`)
      },
    )
    return { token, expiresMs: (payload.exp ?? 0) * 1000 }
  }
}

const noIdToken = 'the provider gave no ID token; it may need another scope, or --oidc-use-access-token'

function idTokenOf(token: string | undefined): Omit<Tokens, 'refreshToken'> {
  if (token === undefined) throw new GrantRefused(noIdToken)
  return { token, expiresMs: (decodeJwt(token).exp ?? 0) * 1000 }
}

/** Tells errors of the protocol in one line, with the provider's own reason. */
export async function told<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof ExitError || !(error instanceof Error)) throw error
    if (error instanceof oauth.ResponseBodyError || error instanceof oauth.AuthorizationResponseError) {
      const { error: code, error_description: text } = error
      throw new GrantRefused(`${what}: ${code}${text === undefined ? '' : `: ${text}`}`, { cause: error })
    }
    if (/"id_token" property must be a string/.test(error.message)) throw new GrantRefused(noIdToken, { cause: error })
    if (error instanceof oauth.OperationProcessingError || error instanceof oauth.UnsupportedOperationError)
      throw new ExitError(`${what}: ${error.message}`, { cause: error })
    throw error
  }
}
