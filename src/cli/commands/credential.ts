// `kcp credential NAME`: prints an ExecCredential with a certificate for one logical cluster. kubectl calls it for
// contexts of `kcp use`.
import { processSignal } from '#cli/process/process-signal.ts'
import { keepCredential, keptCredential, type Credential } from './credential-cache.ts'
import { certificateOf, nameOfLogicalCluster } from './credentials.ts'
import type { InstallationFlags } from './flags.ts'
import { openInstallation } from './installation.ts'

const hours = 1

/** Runs the command. */
export async function run(text: string, flags: InstallationFlags): Promise<void> {
  const name = nameOfLogicalCluster(text)
  const credential = (await keptCredential(name, flags, Date.now())) ?? (await issued(name, flags))
  const { certificate, key, expires } = credential
  const status = { clientCertificateData: certificate, clientKeyData: key, expirationTimestamp: expires }
  console.log(JSON.stringify({ apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status }))
}

async function issued(name: ReturnType<typeof nameOfLogicalCluster>, flags: InstallationFlags): Promise<Credential> {
  const signal = processSignal()
  const expires = new Date(Date.now() + hours * 3_600_000).toISOString()
  await using installation = await openInstallation(flags, signal)
  const pair = await certificateOf(installation, name, hours / 24, signal)
  const credential = { certificate: pair.certificate, key: pair.key, expires }
  // Without the file, kubectl asks again for each command.
  await keepCredential(name, flags, credential).catch(() => undefined)
  return credential
}
