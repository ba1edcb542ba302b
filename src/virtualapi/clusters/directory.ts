// Which logical clusters there are: name, id, and what the server must know of each before it answers.
import type { ClusterId, ClusterName } from '../../apimachinery/meta/index.ts'

/** rbac Subject of the host, as written in spec.owners. */
export interface OwnerSubject {
  readonly kind: 'User' | 'Group' | 'ServiceAccount'
  readonly name: string
  readonly namespace?: string
}

/** A logical cluster as the server sees it. Immutable; replaced on change. */
export interface LogicalCluster {
  readonly name: ClusterName
  readonly id: ClusterId
  /** uid of the LogicalCluster object. */
  readonly uid: string
  /** RFC 3339; objects of the base layer were created then. */
  readonly creationTimestamp: string
  readonly owners: readonly OwnerSubject[]
  /** Being deleted: still served, takes no new namespaces. */
  readonly deleting: boolean
}

export interface ClusterDirectory {
  byName(name: ClusterName): LogicalCluster | undefined
  byId(id: ClusterId): LogicalCluster | undefined
  all(): Iterable<LogicalCluster>
  /** Called after a logical cluster appeared, changed or went. Returns the way to stop. */
  onChange(listener: (change: { before?: LogicalCluster; after?: LogicalCluster }) => void): () => void
}
