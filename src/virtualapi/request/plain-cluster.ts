// A server of one cluster: the API of a single kube-apiserver, at paths without a prefix, for test suites.
import type { LogicalCluster } from './logical-cluster.ts'

export interface PlainCluster {
  /** The cluster that is served at paths without a prefix. */
  readonly cluster: LogicalCluster
  /** Names of admission plugins that do not run, besides those that kube-apiserver does not have. */
  readonly withoutPlugins: readonly string[]
}

/** Admission plugins of logical clusters, which kube-apiserver does not have. */
const pluginsOfLogicalClusters = [
  'InstallationFields',
  'FormerServiceAccounts',
  'ObjectsOfMembers',
  'NodesOfMembers',
  'NodeAndPriority',
  'ExternalNames',
  'IngressClassWarning',
  'MemberLimitWarnings',
  'LogicalClusterLifecycle',
]

/** True if the admission plugin does not run in this cluster. */
export function isWithoutPlugin({ withoutPlugins }: PlainCluster, name: string): boolean {
  return withoutPlugins.includes(name) || pluginsOfLogicalClusters.includes(name)
}
