// Logical clusters and members by name, and credentials of an admin inside one logical cluster.
import { clusterIdOf, tryClusterName, type ClusterName } from '#apimachinery/meta/index.ts'
import { type ExecCommand, httpTransport, kubeconfigText, type Transport } from '#client/index.ts'
import { logicalClusters, memberClusters, type LogicalCluster, type MemberCluster } from '#crds/index.ts'
import { ExitError, UsageError } from '#cli/process/exit-error.ts'
import type { Installation } from './installation.ts'
import { currentKcpContext } from './kubeconfig-file.ts'

/** The text as the name of a logical cluster. Throws ExitError if it is not a valid name. */
export function nameOfLogicalCluster(text: string): ClusterName {
  const name = tryClusterName(text)
  if (name === undefined)
    throw new UsageError(
      `"${text}" is not a valid name of a logical cluster: 1 to 63 lower-case letters, digits and "-", with a letter or a digit at both ends`,
    )
  return name
}

/**
 * The logical cluster of `--cluster`, else that of the current context of `kcp use`. Rejects with UsageError if there is
 * neither.
 */
export async function clusterOf({ cluster }: { readonly cluster?: string }): Promise<ClusterName> {
  const name = cluster ?? (await currentKcpContext())?.cluster
  if (name === undefined)
    throw new UsageError('which logical cluster? give --cluster NAME, or choose one: kcp use NAME')
  return nameOfLogicalCluster(name)
}

/** The LogicalCluster. Rejects with ExitError if there is none of this name. */
export async function logicalClusterOf(
  { clusters }: Pick<Installation, 'clusters'>,
  name: string,
  signal: AbortSignal,
): Promise<LogicalCluster> {
  const found = await clusters.tryGet<LogicalCluster>(logicalClusters, { name }, { signal })
  if (found === undefined) throw new ExitError(`there is no LogicalCluster "${name}"; kcp list lists them`)
  return found
}

/** The MemberCluster. Rejects with ExitError if there is none of this name. */
export async function memberOf(
  { clusters }: Pick<Installation, 'clusters'>,
  name: string,
  signal: AbortSignal,
): Promise<MemberCluster> {
  const found = await clusters.tryGet<MemberCluster>(memberClusters, { name }, { signal })
  if (found === undefined) throw new ExitError(`there is no MemberCluster "${name}"; kcp get members lists them`)
  return found
}

/** A client certificate of an admin of the logical cluster. Rejects with ExitError if there is no such one. */
export async function certificateOf(
  installation: Pick<Installation, 'clusters' | 'pki'>,
  name: ClusterName,
  days: number,
  signal: AbortSignal,
): Promise<{ readonly certificate: string; readonly key: string }> {
  const object = await logicalClusterOf(installation, name, signal)
  return await installation.pki.issueClientCertificate({
    commonName: 'admin',
    organizations: ['system:masters'],
    realm: clusterIdOf(object.metadata.uid ?? ''),
    days,
  })
}

/** A connection to the direct listener as an admin of one logical cluster, to whom the rules for tenants apply. */
export async function openInside(
  installation: Installation,
  name: ClusterName,
  signal: AbortSignal,
): Promise<Transport> {
  const { certificate: cert, key } = await certificateOf(installation, name, 1, signal)
  const endpoint = { server: installation.directUrl, ca: installation.pki.servingCa, cert, key }
  return httpTransport({ endpoint: () => Promise.resolve(endpoint) })
}

/**
 * A kubeconfig with admin rights inside the logical cluster and none outside. Rejects with ExitError if there is no
 * such logical cluster.
 */
export async function issueKubeconfig(
  installation: Pick<Installation, 'clusters' | 'directUrl' | 'pki'>,
  name: ClusterName,
  days: number,
  signal: AbortSignal,
): Promise<string> {
  const { directUrl, pki } = installation
  const { certificate, key } = await certificateOf(installation, name, days, signal)
  return kubeconfigText({ name, server: `${directUrl}/clusters/${name}`, ca: pki.servingCa, cert: certificate, key })
}

/**
 * A kubeconfig without credentials: its user runs a program that prints them. Rejects with ExitError if there is no such
 * logical cluster.
 */
export async function signInKubeconfig(
  installation: Pick<Installation, 'clusters' | 'directUrl' | 'pki'>,
  name: ClusterName,
  execOf: (object: LogicalCluster) => ExecCommand,
  signal: AbortSignal,
): Promise<string> {
  const { directUrl, pki } = installation
  const exec = execOf(await logicalClusterOf(installation, name, signal))
  return kubeconfigText({ name, server: `${directUrl}/clusters/${name}`, ca: pki.servingCa, exec })
}
