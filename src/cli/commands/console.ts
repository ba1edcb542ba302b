// `kcp console [NAME]`: prints a link that signs a browser in to the console, once, as an admin.
import { clusterIdOf } from '#apimachinery/meta/index.ts'
import { systemClock } from '#async/index.ts'
import { UsageError } from '#cli/process/exit-error.ts'
import { openUrl } from '#cli/process/open-url.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { EndedRecord, Sessions, ticketMs, type SessionIdentity } from '#virtualapi/index.ts'
import { installationNamespace } from '#cli/roles/host-installation.ts'
import { createLogger } from '#telemetry/index.ts'
import { logicalClusterOf, nameOfLogicalCluster } from './credentials.ts'
import type { InstallationFlags } from './flags.ts'
import { openInstallation, type Installation } from './installation.ts'

interface Flags extends InstallationFlags {
  readonly open?: boolean
  readonly endAll?: boolean
  readonly url?: string
}

/** Runs the command. */
export async function run(name: string | undefined, flags: Flags): Promise<void> {
  const signal = processSignal()
  const url = flags.url === undefined ? undefined : originOf(flags.url)
  await using installation = await openInstallation(flags, signal)
  if (flags.endAll === true) {
    await endAll(installation, signal)
    console.log('all sessions of the console have ended')
    return
  }
  const identity = await identityOf(name, installation, signal)
  const origin = url ?? installation.consoleUrl
  const link = await signInLink(installation, identity, origin)
  process.stdout.write(`${link}\n`)
  const who = name === undefined ? 'the admin of the installation' : `the admin of logical cluster "${name}"`
  process.stderr.write(`\nThis link signs in ${who}. It works once, within ${ticketMs / 60_000} minutes.\n`)
  if (origin === undefined) process.stderr.write(trustHint(flags))
  if (flags.open === true) await openUrl(link)
}

/** A link that signs in to the console, once. `origin`: where browsers reach the console; default the direct listener. */
export async function signInLink(
  { pki, directUrl }: Pick<Installation, 'pki' | 'directUrl'>,
  identity: SessionIdentity,
  origin = directUrl,
): Promise<string> {
  const sessions = new Sessions({ key: pki.consoleKey(), clock: systemClock })
  // In the fragment, which browsers send to no server.
  return `${origin}/console/#ticket=${await sessions.issueTicket(identity)}`
}

async function endAll({ clusters: client }: Installation, signal: AbortSignal): Promise<void> {
  const log = createLogger({ level: 'error' })
  const options = { client, namespace: installationNamespace, clock: systemClock, log, signal }
  await using record = new EndedRecord({ ...options, onEnded: () => undefined })
  await record.endAll(signal)
}

function originOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'https:') throw new UsageError(`--url must be https://HOST, not "${text}"`)
  return url.origin
}

async function identityOf(
  text: string | undefined,
  installation: Installation,
  signal: AbortSignal,
): Promise<SessionIdentity> {
  if (text === undefined) return { as: 'installation' }
  const { metadata } = await logicalClusterOf(installation, nameOfLogicalCluster(text), signal)
  return { as: 'clusterAdmin', cluster: clusterIdOf(metadata.uid ?? '') }
}

function trustHint({ rootDir }: InstallationFlags): string {
  const file = rootDir === undefined ? '' : `: ${rootDir}/pki/serving-ca.crt`
  return `The certificate is of kcp's own authority, which browsers do not know; import it, or accept it once${file}\n`
}
