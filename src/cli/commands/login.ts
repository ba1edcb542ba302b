// `kcp login`: prints an ExecCredential (client.authentication.k8s.io/v1) with a token of an identity provider. kubectl
// runs it.
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { parseJsonText } from '#apimachinery/json/index.ts'
import { isJsonObject } from '#apimachinery/meta/index.ts'
import type { GrantType } from '#cli/login/grant-types.ts'
import type { PkceMethod } from '#cli/login/provider.ts'
import { signedIn, type SignInOptions } from '#cli/login/sign-in.ts'
import { fileCache, noCache } from '#cli/login/token-cache.ts'
import { ExitError, UsageError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import type { ListenAddress } from './flags.ts'

/** The flag values as commander passes them. */
export interface LoginFlags {
  readonly oidcIssuerUrl: string
  readonly oidcClientId: string
  readonly oidcClientSecret?: string
  readonly oidcExtraScope: readonly string[]
  readonly oidcUseAccessToken?: boolean
  readonly oidcRequestHeader: Readonly<Record<string, string>>
  readonly forceRefresh?: boolean
  readonly grantType: GrantType
  readonly listenAddress: readonly ListenAddress[]
  readonly skipOpenBrowser?: boolean
  readonly browserCommand?: string
  readonly authenticationTimeoutSec: number
  readonly oidcRedirectUrl?: string
  readonly oidcRedirectUrlHostname: string
  readonly oidcRedirectUrlAuthcodeKeyboard?: string
  readonly oidcAuthRequestExtraParams: Readonly<Record<string, string>>
  readonly oidcPkceMethod: PkceMethod
  readonly oidcUsePkce?: boolean
  readonly localServerCert?: string
  readonly localServerKey?: string
  readonly openUrlAfterAuthentication?: string
  readonly username?: string
  readonly password?: string
  readonly certificateAuthority: readonly string[]
  readonly certificateAuthorityData: readonly string[]
  readonly insecureSkipTlsVerify?: boolean
  readonly tokenCacheDir: string
  readonly tokenCacheStorage: 'disk' | 'none'
}

/** Runs the command. */
export async function run(flags: LoginFlags): Promise<void> {
  const apiVersion = credentialVersion(process.env['KUBERNETES_EXEC_INFO'])
  const { token, expiresMs } = await signedIn(await optionsOf(flags), processSignal())
  const expirationTimestamp = new Date(expiresMs).toISOString().replace(/\.\d+Z$/, 'Z')
  console.log(JSON.stringify({ apiVersion, kind: 'ExecCredential', status: { token, expirationTimestamp } }))
}

const versions = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1']

/** The version that the client asks for; without a client, v1. */
function credentialVersion(info: string | undefined): string {
  const [usual = ''] = versions
  if (info === undefined || info === '') return usual
  const asked: unknown = parsed(info)
  const version = isJsonObject(asked) ? asked['apiVersion'] : undefined
  if (typeof version !== 'string' || !versions.includes(version))
    throw new UsageError(`KUBERNETES_EXEC_INFO must be an ExecCredential of ${versions.join(' or ')}`)
  return version
}

function parsed(text: string): unknown {
  try {
    return parseJsonText(text)
  } catch {
    return undefined
  }
}

async function optionsOf(flags: LoginFlags): Promise<SignInOptions> {
  const { oidcIssuerUrl: issuerUrl, oidcClientId: clientId, oidcClientSecret: clientSecret, grantType } = flags
  const { oidcExtraScope: extraScopes, oidcUseAccessToken: useAccessToken = false } = flags
  const authorities = await authoritiesOf(flags)
  const redirectUrl = redirectUrlOf(flags)
  const addresses = flags.listenAddress.length > 0 ? flags.listenAddress : usualAddresses
  const tls = await listenerTls(flags)
  const parameters = flags.oidcAuthRequestExtraParams
  const { tokenCacheDir, tokenCacheStorage, username, password, browserCommand } = flags
  const key = [issuerUrl, clientId, clientSecret ?? '', extraScopes, useAccessToken, redirectUrl ?? '', username ?? '']
  const place = [authorities ?? [], flags.insecureSkipTlsVerify === true, parameters, flags.oidcRequestHeader]
  return {
    client: {
      ...{ issuerUrl, clientId, extraScopes, useAccessToken, ...(clientSecret !== undefined && { clientSecret }) },
      connection: {
        ...(authorities && { authorities }),
        insecureSkipTlsVerify: flags.insecureSkipTlsVerify === true,
        headers: flags.oidcRequestHeader,
      },
    },
    grantType,
    browser: {
      pkce: flags.oidcUsePkce === true ? 'S256' : flags.oidcPkceMethod,
      ...(redirectUrl !== undefined && { redirectUrl }),
      ...{ redirectHost: flags.oidcRedirectUrlHostname, parameters },
      ...{ skipOpenBrowser: flags.skipOpenBrowser === true, ...(browserCommand !== undefined && { browserCommand }) },
      listen: { addresses, ...(tls && { tls }) },
      timeoutMs: flags.authenticationTimeoutSec * 1000,
      ...(flags.openUrlAfterAuthentication !== undefined && { thenOpen: flags.openUrlAfterAuthentication }),
    },
    password: { ...(username !== undefined && { username }), ...(password !== undefined && { password }) },
    cache: tokenCacheStorage === 'none' ? noCache : fileCache(expanded(tokenCacheDir), [...key, ...place]),
    forceRefresh: flags.forceRefresh === true,
  }
}

/** Those of kubelogin: providers know them already. */
const usualAddresses: readonly ListenAddress[] = [
  { host: '127.0.0.1', port: 8000 },
  { host: '127.0.0.1', port: 18_000 },
]

function redirectUrlOf(flags: LoginFlags): string | undefined {
  const { oidcRedirectUrl, oidcRedirectUrlAuthcodeKeyboard: ofKeyboard, grantType } = flags
  const url = oidcRedirectUrl ?? (grantType === 'authcode-keyboard' ? ofKeyboard : undefined)
  if (url !== undefined && !URL.canParse(url)) throw new UsageError(`--oidc-redirect-url must be a URL, not "${url}"`)
  return url
}

async function authoritiesOf(flags: LoginFlags): Promise<readonly string[] | undefined> {
  const files = await Promise.all(flags.certificateAuthority.map((path) => readText(path, '--certificate-authority')))
  const texts = flags.certificateAuthorityData.map((data) => Buffer.from(data, 'base64').toString())
  const all = [...files, ...texts]
  for (const text of all)
    if (!text.includes('-----BEGIN CERTIFICATE-----'))
      throw new UsageError('a certificate authority must be PEM certificates')
  return all.length === 0 ? undefined : all
}

async function listenerTls(flags: LoginFlags): Promise<{ cert: string; key: string } | undefined> {
  const { localServerCert: cert, localServerKey: key } = flags
  if (cert === undefined && key === undefined) return undefined
  if (cert === undefined || key === undefined)
    throw new UsageError('--local-server-cert and --local-server-key go together')
  return { cert: await readText(cert, '--local-server-cert'), key: await readText(key, '--local-server-key') }
}

async function readText(path: string, flag: string): Promise<string> {
  return await readFile(expanded(path), 'utf8').catch((error: unknown) => {
    throw new ExitError(`${flag}: ${(error as Error).message}`)
  })
}

/** `~` at the beginning is the person's home, in a kubeconfig that no shell reads. */
function expanded(path: string): string {
  return path === '~' || path.startsWith('~/') ? join(homedir(), path.slice(1)) : path
}
