// A token for Kubernetes: the kept one while it is valid, else a new one by the refresh token, else by signing in.
import { signInByBrowser, signInByKeyboard, type LoopbackSignIn } from './authorization-code.ts'
import { refreshed, signInAsClient, signInByDevice, signInByPassword, type PasswordOptions } from './other-grants.ts'
import type { GrantType } from './grant-types.ts'
import { GrantRefused, Provider, type ClientOptions, type Tokens } from './provider.ts'
import type { TokenCache } from './token-cache.ts'

export interface SignInOptions {
  readonly client: ClientOptions
  /** `auto`: password with a user name, else authcode. */
  readonly grantType: GrantType
  readonly browser: LoopbackSignIn
  readonly password: PasswordOptions
  readonly cache: TokenCache
  /** Do not take the kept token. */
  readonly forceRefresh: boolean
}

/** A token with this much left is not used, milliseconds: it would expire on its way. */
const marginMs = 10_000

/** Rejects with ExitError if nobody signs in, or the provider cannot be reached. */
export async function signedIn(options: SignInOptions, signal: AbortSignal): Promise<Tokens> {
  const { cache, forceRefresh } = options
  const isValid = (tokens: Tokens | undefined): tokens is Tokens =>
    tokens !== undefined && tokens.expiresMs - Date.now() > marginMs
  const kept = await cache.read()
  if (isValid(kept) && !forceRefresh) return kept
  return await cache.exclusively(async () => {
    // Another command may have signed in while this one has waited.
    const now = await cache.read()
    if (isValid(now) && (!forceRefresh || now.token !== kept?.token)) return now
    const provider = await Provider.discover(options.client, signal)
    const tokens = (await tryRefresh(provider, now)) ?? (await grant(provider, options, signal))
    await cache.write(tokens).catch((error: unknown) => {
      process.stderr.write(`kcp: the token is not kept: ${(error as Error).message}\n`)
    })
    return tokens
  }, signal)
}

/** Undefined if there is nothing to refresh, or the provider wants the person to sign in again. */
async function tryRefresh(provider: Provider, kept: Tokens | undefined): Promise<Tokens | undefined> {
  if (kept?.refreshToken === undefined) return undefined
  try {
    return await refreshed(provider, kept.refreshToken)
  } catch (error) {
    if (error instanceof GrantRefused) return undefined
    throw error
  }
}

async function grant(provider: Provider, options: SignInOptions, signal: AbortSignal): Promise<Tokens> {
  const { grantType, browser, password } = options
  switch (grantType) {
    case 'auto':
      return password.username === undefined
        ? await signInByBrowser(provider, browser, signal)
        : await signInByPassword(provider, password, signal)
    case 'authcode':
      return await signInByBrowser(provider, browser, signal)
    case 'authcode-keyboard':
      return await signInByKeyboard(provider, browser, signal)
    case 'password':
      return await signInByPassword(provider, password, signal)
    case 'device-code':
      return await signInByDevice(provider, browser, signal)
    case 'client-credentials':
      return await signInAsClient(provider, browser)
  }
}
