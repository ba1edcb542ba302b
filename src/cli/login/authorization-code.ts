// The authorization code grant with PKCE (RFC 6749, 7636): by a browser of this machine, or with a code that the person
// types in.
import * as oauth from 'oauth4webapi'
import { ExitError } from '#cli/process/exit-error.ts'
import { openUrl } from '#cli/process/open-url.ts'
import { askLine } from '#cli/process/ask.ts'
import { Loopback, type LoopbackOptions } from './loopback.ts'
import { told, type PkceMethod, type Provider, type Tokens } from './provider.ts'

export interface BrowserOptions {
  readonly skipOpenBrowser: boolean
  /** A program that gets the URL as its argument. */
  readonly browserCommand?: string
}

export interface AuthorizationCodeOptions {
  readonly pkce: PkceMethod
  /** Default: http://HOST:PORT of the listener; for a keyboard, urn:ietf:wg:oauth:2.0:oob. */
  readonly redirectUrl?: string
  /** Host of the default redirect URL. */
  readonly redirectHost: string
  /** Further parameters of the authorization request. */
  readonly parameters: Readonly<Record<string, string>>
}

export interface LoopbackSignIn extends AuthorizationCodeOptions, BrowserOptions {
  readonly listen: Omit<LoopbackOptions, 'path'>
  readonly timeoutMs: number
  /** Where the browser goes afterwards; absent: a page of ours. */
  readonly thenOpen?: string
}

/** One request for a code. */
interface Asked {
  readonly url: URL
  readonly state: string
  readonly nonce: string
  readonly verifier?: string
  readonly redirectUrl: string
}

async function ask(provider: Provider, options: AuthorizationCodeOptions, redirectUrl: string): Promise<Asked> {
  const { authorization_endpoint: endpoint } = provider.server
  if (endpoint === undefined)
    throw new ExitError('the provider has no authorization_endpoint; try --grant-type device-code')
  const [state, nonce] = [oauth.generateRandomState(), oauth.generateRandomNonce()]
  const verifier = provider.usesPkce(options.pkce) ? oauth.generateRandomCodeVerifier() : undefined
  const url = new URL(endpoint)
  const parameters = {
    ...{ response_type: 'code', client_id: provider.client.client_id, redirect_uri: redirectUrl },
    // Google gives refresh tokens for it.
    ...{ scope: provider.scope, access_type: 'offline' },
    ...options.parameters,
    ...{ state, nonce },
    ...(verifier !== undefined && {
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    }),
  }
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
  return { url, state, nonce, redirectUrl, ...(verifier !== undefined && { verifier }) }
}

/** Gives the code back, and checks that the ID token belongs to the request (nonce). */
async function exchange(provider: Provider, asked: Asked, parameters: URLSearchParams): Promise<Tokens> {
  const checked = await told('the provider refused to sign in', async () =>
    // The issuer in the answer is checked, too (RFC 9207).
    oauth.validateAuthResponse(provider.server, provider.client, parameters, asked.state),
  )
  const response = await oauth.authorizationCodeGrantRequest(
    ...([provider.server, provider.client, provider.authentication, checked, asked.redirectUrl] as const),
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- for providers that refuse PKCE, by flag
    asked.verifier ?? oauth.nopkce,
    provider.requests,
  )
  return await provider.tokensOf(response, (server, client, answer) =>
    oauth.processAuthorizationCodeResponse(server, client, answer, { expectedNonce: asked.nonce }),
  )
}

/** Signs in by a browser that comes back to a listener of this machine. Rejects with ExitError when the time is over. */
export async function signInByBrowser(
  provider: Provider,
  options: LoopbackSignIn,
  signal: AbortSignal,
): Promise<Tokens> {
  const path = options.redirectUrl === undefined ? {} : { path: new URL(options.redirectUrl).pathname }
  await using loopback = await Loopback.listen({ ...options.listen, ...path })
  const asked = await ask(provider, options, options.redirectUrl ?? loopback.origin(options.redirectHost))
  const late = new AbortController()
  const waited = `nobody has signed in within ${options.timeoutMs / 1000} s (--authentication-timeout-sec)`
  const timer = setTimeout(() => late.abort(new ExitError(waited)), options.timeoutMs)
  try {
    const answer = loopback.callback(asked.url, asked.state, AbortSignal.any([signal, late.signal]))
    const opened = new AbortController()
    const shown = showUrl(loopback.startUrl(options.redirectHost), options, opened.signal)
    const callback = await answer.finally(() => opened.abort())
    await shown
    try {
      const tokens = await exchange(provider, asked, callback.parameters)
      const page = { status: 200, text: 'You are signed in. You can close this page, and go back to the terminal.' }
      callback.respond(options.thenOpen === undefined ? page : { location: options.thenOpen })
      return tokens
    } catch (error) {
      callback.respond({ status: 400, text: `Signing in has failed: ${(error as Error).message}` })
      throw error
    }
  } finally {
    clearTimeout(timer)
  }
}

/** Signs in with a code that the provider shows, and that the person types in. */
export async function signInByKeyboard(
  provider: Provider,
  options: AuthorizationCodeOptions,
  signal: AbortSignal,
): Promise<Tokens> {
  const asked = await ask(provider, options, options.redirectUrl ?? 'urn:ietf:wg:oauth:2.0:oob')
  process.stderr.write(`Sign in with a browser: ${asked.url.href}\n`)
  const code = await askLine('Code: ', { signal })
  // A code that is typed has no state: PKCE and the nonce bind it to this request.
  const parameters = new URLSearchParams({ code, state: asked.state })
  if (provider.server.authorization_response_iss_parameter_supported === true)
    parameters.set('iss', provider.server.issuer)
  return await exchange(provider, asked, parameters)
}

/** Opens the URL in a browser, or prints it. `opened` aborts when the browser has it. */
export async function showUrl(
  url: string,
  { skipOpenBrowser, browserCommand }: BrowserOptions,
  opened: AbortSignal,
): Promise<void> {
  const tell = (why = ''): void => void process.stderr.write(`${why}Sign in with a browser: ${url}\n`)
  if (skipOpenBrowser) {
    tell()
    return
  }
  try {
    await openUrl(url, { opened, ...(browserCommand !== undefined && { command: browserCommand }) })
  } catch (error) {
    tell(`${(error as Error).message}\n`)
  }
}
