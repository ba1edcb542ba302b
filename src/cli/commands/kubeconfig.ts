// `kcp kubeconfig NAME`: prints a kubeconfig for one logical cluster, with admin rights inside it and none outside.
import { clusterIdOf, tryClusterName } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { kubeconfigText } from '#client/index.ts'
import { logicalClusters, type LogicalCluster } from '#crds/index.ts'
import { ExitError } from '#cli/process/exit-error.ts'
import type { InstallationFlags } from './flags.ts'
import { openInstallation } from './installation.ts'
import { processSignal } from '#cli/process/process-signal.ts'

interface Flags extends InstallationFlags {
  readonly days: string
}

/** Runs the command. */
export async function run(text: string, flags: Flags): Promise<void> {
  const signal = processSignal()
  const name = tryClusterName(text)
  if (name === undefined) throw new ExitError(`"${text}" is not a valid name of a logical cluster`)
  const days = Number(flags.days)
  if (!Number.isInteger(days) || days < 1)
    throw new ExitError(`--days must be a whole number of days, not "${flags.days}"`)
  await using installation = await openInstallation(flags, signal)
  const { clusters, directUrl, pki } = installation
  const object = await clusters.get<LogicalCluster>(logicalClusters, { name }, { signal }).catch((error: unknown) => {
    if (isStatusError(error, 'NotFound'))
      throw new ExitError(`there is no LogicalCluster "${name}"; kubectl get lc lists them`)
    throw error
  })
  const { certificate, key } = await pki.issueClientCertificate({
    commonName: 'admin',
    organizations: ['system:masters'],
    realm: clusterIdOf(object.metadata.uid ?? ''),
    days,
  })
  const server = `${directUrl}/clusters/${name}`
  process.stdout.write(kubeconfigText({ name, server, ca: pki.servingCa, cert: certificate, key }))
}
