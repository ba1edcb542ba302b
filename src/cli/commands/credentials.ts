// Credentials of an admin inside one logical cluster, for the commands that hand them out or use them.
import { clusterIdOf, tryClusterName, type ClusterName } from '#apimachinery/meta/index.ts'
import { kubeconfigText } from '#client/index.ts'
import { logicalClusters, type LogicalCluster } from '#crds/index.ts'
import { ExitError } from '#cli/process/exit-error.ts'
import type { Installation } from './installation.ts'

/** The text as the name of a logical cluster. Throws ExitError if it is not a valid name. */
export function nameOfLogicalCluster(text: string): ClusterName {
  const name = tryClusterName(text)
  if (name === undefined) throw new ExitError(`"${text}" is not a valid name of a logical cluster`)
  return name
}

/** The LogicalCluster. Rejects with ExitError if there is none of this name. */
export async function logicalClusterOf(
  { clusters }: Pick<Installation, 'clusters'>,
  name: string,
  signal: AbortSignal,
): Promise<LogicalCluster> {
  const found = await clusters.tryGet<LogicalCluster>(logicalClusters, { name }, { signal })
  if (found === undefined) throw new ExitError(`there is no LogicalCluster "${name}"; kubectl get lc lists them`)
  return found
}

/**
 * A kubeconfig with admin rights inside the logical cluster and none outside. Rejects with ExitError if there is no
 * such logical cluster.
 */
export async function issueKubeconfig(
  installation: Installation,
  name: ClusterName,
  days: number,
  signal: AbortSignal,
): Promise<string> {
  const { directUrl, pki } = installation
  const object = await logicalClusterOf(installation, name, signal)
  const { certificate, key } = await pki.issueClientCertificate({
    commonName: 'admin',
    organizations: ['system:masters'],
    realm: clusterIdOf(object.metadata.uid ?? ''),
    days,
  })
  return kubeconfigText({ name, server: `${directUrl}/clusters/${name}`, ca: pki.servingCa, cert: certificate, key })
}
