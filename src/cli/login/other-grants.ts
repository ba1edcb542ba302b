// Grants that need no browser on this machine: device authorization (RFC 8628), password and client credentials
// (RFC 6749), and refresh tokens.
import * as oauth from 'oauth4webapi'
import { sleep } from '#async/index.ts'
import { askLine } from '#cli/process/ask.ts'
import { ExitError } from '#cli/process/exit-error.ts'
import { showUrl, type BrowserOptions } from './authorization-code.ts'
import { told, type Provider, type Tokens } from './provider.ts'

/**
 * Seconds between two polls of the provider, unless it asks for another interval; `slow_down` adds as many (RFC 8628,
 * section 3.5).
 */
const usualSeconds = 5

/** Shows a code for a browser on this or another machine, and waits until the person has signed in there. */
export async function signInByDevice(
  provider: Provider,
  options: BrowserOptions,
  signal: AbortSignal,
): Promise<Tokens> {
  const { server, client, authentication, requests, scope } = provider
  if (server.device_authorization_endpoint === undefined)
    throw new ExitError('the provider has no device_authorization_endpoint; try --grant-type authcode')
  const refused = 'the provider refused the device flow'
  const device = await told(refused, async () => {
    const response = await oauth.deviceAuthorizationRequest(server, client, authentication, { scope }, requests)
    return await oauth.processDeviceAuthorizationResponse(server, client, response)
  })
  process.stderr.write(`Code: ${device.user_code}\n`)
  await showUrl(device.verification_uri_complete ?? device.verification_uri, options, signal)
  let seconds = device.interval ?? usualSeconds
  const untilMs = Date.now() + device.expires_in * 1000
  while (Date.now() < untilMs) {
    await sleep(seconds * 1000, signal)
    const args = [server, client, authentication, device.device_code, requests] as const
    const response = await oauth.deviceCodeGrantRequest(...args)
    try {
      return await provider.tokensOf(response, oauth.processDeviceCodeResponse)
    } catch (error) {
      const reason = (error as Error).cause
      const code = reason instanceof oauth.ResponseBodyError ? reason.error : undefined
      if (code === 'slow_down') seconds += usualSeconds
      else if (code !== 'authorization_pending') throw error
    }
  }
  throw new ExitError(`nobody has signed in within ${device.expires_in} s`)
}

export interface PasswordOptions {
  readonly username?: string
  readonly password?: string
}

/** Signs in with a name and a password, and asks for what is not given. */
export async function signInByPassword(
  provider: Provider,
  { username, password }: PasswordOptions,
  signal: AbortSignal,
): Promise<Tokens> {
  const { server, client, authentication, requests, scope } = provider
  const name = username ?? (await askLine('Username: ', { signal }))
  const secret = password ?? (await askLine('Password: ', { signal, isHidden: true }))
  const parameters = { username: name, password: secret, scope }
  const args = [server, client, authentication, 'password', parameters, requests] as const
  const response = await oauth.genericTokenEndpointRequest(...args)
  return await provider.tokensOf(response, oauth.processGenericTokenEndpointResponse)
}

/** Signs the client itself in, for machines. */
export async function signInAsClient(
  provider: Provider,
  { parameters }: { readonly parameters: Readonly<Record<string, string>> },
): Promise<Tokens> {
  const { server, client, authentication, requests, scope } = provider
  const asked = { scope, ...parameters }
  const response = await oauth.clientCredentialsGrantRequest(server, client, authentication, asked, requests)
  return await provider.tokensOf(response, oauth.processClientCredentialsResponse)
}

/** New tokens for a refresh token, which the provider may replace. Rejects with GrantRefused if it is not valid. */
export async function refreshed(provider: Provider, refreshToken: string): Promise<Tokens> {
  const { server, client, authentication, requests } = provider
  const response = await oauth.refreshTokenGrantRequest(server, client, authentication, refreshToken, requests)
  const tokens = await provider.tokensOf(response, oauth.processRefreshTokenResponse)
  return { refreshToken, ...tokens }
}
