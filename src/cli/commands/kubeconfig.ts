// `kcp kubeconfig NAME`: prints a kubeconfig for one logical cluster, with admin rights inside it and none outside.
import { UsageError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { issueKubeconfig, nameOfLogicalCluster } from './credentials.ts'
import type { InstallationFlags } from './flags.ts'
import { openInstallation } from './installation.ts'

interface Flags extends InstallationFlags {
  readonly days: string
}

/** Runs the command. */
export async function run(text: string, flags: Flags): Promise<void> {
  const signal = processSignal()
  const name = nameOfLogicalCluster(text)
  const days = Number(flags.days)
  if (!Number.isInteger(days) || days < 1)
    throw new UsageError(`--days must be a whole number of days, not "${flags.days}"`)
  await using installation = await openInstallation(flags, signal)
  process.stdout.write(await issueKubeconfig(installation, name, days, signal))
}
