// Credentials of an admin inside one logical cluster, for the commands that hand them out or use them.
import { clusterIdOf, tryClusterName, type ClusterName } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
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

/**
 * <<<<<<< HEAD A kubeconfig with admin rights inside the logical cluster and none outside. Rejects with ExitError if
 * there is none. ======= A kubeconfig with admin rights inside the logical cluster and none outside. Rejects with
 * ExitError if there is no such logical cluster. >>>>>>> 9b0c10f2 (comments: plain sentences in store, client,
 * reconcile, controllers, gateway, network, cli, apimachinery)
 */
export async function issueKubeconfig(
  { clusters, directUrl, pki }: Installation,
  name: ClusterName,
  days: number,
  signal: AbortSignal,
): Promise<string> {
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
  return kubeconfigText({ name, server: `${directUrl}/clusters/${name}`, ca: pki.servingCa, cert: certificate, key })
}
