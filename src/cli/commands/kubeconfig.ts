// `kcp kubeconfig NAME`: prints a kubeconfig for one logical cluster, with admin rights inside it and none outside; or with
// --login one for everybody, whose users sign in with an identity provider.
import { readFile } from 'node:fs/promises'
import type { ExecCommand } from '#client/index.ts'
import type { JwtIssuer, LogicalCluster } from '#crds/index.ts'
import { ExitError, UsageError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { issueKubeconfig, nameOfLogicalCluster, signInKubeconfig } from './credentials.ts'
import type { InstallationFlags } from './flags.ts'
import { openInstallation } from './installation.ts'

/** The programs that sign people in. */
export type SignInProgram = 'kcp' | 'kubelogin'

interface Flags extends InstallationFlags {
  readonly days: string
  /** `true`: kcp. */
  readonly login?: SignInProgram | true
  readonly oidcIssuerUrl?: string
  readonly oidcClientId?: string
  readonly oidcExtraScope: readonly string[]
  readonly certificateAuthority?: string
}

/** Runs the command. */
export async function run(text: string, flags: Flags): Promise<void> {
  const signal = processSignal()
  const name = nameOfLogicalCluster(text)
  const days = Number(flags.days)
  if (!Number.isInteger(days) || days < 1)
    throw new UsageError(`--days must be a whole number of days, not "${flags.days}"`)
  const { login, oidcIssuerUrl, oidcClientId, certificateAuthority: file } = flags
  if (login === undefined && (oidcIssuerUrl ?? oidcClientId ?? file) !== undefined)
    throw new UsageError('flags of identity providers are for --login')
  const authority = file === undefined ? undefined : await readAuthority(file)
  await using installation = await openInstallation(flags, signal)
  const kubeconfig =
    login === undefined
      ? await issueKubeconfig(installation, name, days, signal)
      : await signInKubeconfig(installation, name, (object) => execOf(object, flags, authority), signal)
  process.stdout.write(kubeconfig)
}

/** The program that signs in, with what the flags say, completed by the only issuer of the logical cluster. */
function execOf(object: LogicalCluster, flags: Flags, authority: string | undefined): ExecCommand {
  const { metadata, spec } = object
  const issuers = spec?.authentication?.jwt ?? []
  const { oidcIssuerUrl: wanted } = flags
  const issuer = wanted === undefined ? onlyOf(issuers) : issuers.find(({ issuer: { url } }) => url === wanted)
  const url = wanted ?? issuer?.issuer.url
  if (url === undefined)
    throw new UsageError(
      `which identity provider? give --oidc-issuer-url URL: spec.authentication of "${metadata.name}" has ${issuers.length}`,
    )
  // An ID token's audience is its client.
  const client = flags.oidcClientId ?? onlyOf(issuer?.issuer.audiences ?? [])
  if (client === undefined) throw new UsageError(`which client of ${url}? give --oidc-client-id ID`)
  const ca = authority ?? issuer?.issuer.certificateAuthority
  const args = [
    ...[`--oidc-issuer-url=${url}`, `--oidc-client-id=${client}`],
    ...flags.oidcExtraScope.map((scope) => `--oidc-extra-scope=${scope}`),
    ...(ca === undefined || ca === '' ? [] : [`--certificate-authority-data=${Buffer.from(ca).toString('base64')}`]),
  ]
  if (flags.login === 'kubelogin')
    return {
      ...{ command: 'kubectl', args: ['oidc-login', 'get-token', ...args] },
      installHint: 'kubelogin is not found; install it: kubectl krew install oidc-login',
    }
  return {
    command: 'kcp',
    args: ['login', ...args],
    installHint: 'kcp is not found; it signs you in: put it into PATH',
  }
}

function onlyOf<T extends JwtIssuer | string>(list: readonly T[]): T | undefined {
  return list.length === 1 ? list[0] : undefined
}

async function readAuthority(file: string): Promise<string> {
  return await readFile(file, 'utf8').catch((error: unknown) => {
    throw new ExitError(`--certificate-authority: ${(error as Error).message}`)
  })
}
