// Names and ids of logical clusters. People and URLs use the name. Keys, downstream namespaces and certificates use the
// id, because a deleted cluster's name may be used again and its id never is.
import { createHash } from 'node:crypto'
import type { Brand } from './brand.ts'

export type ClusterName = Brand<string, 'ClusterName'>
export type ClusterId = Brand<string, 'ClusterId'>

/** Length of every ClusterId. Downstream namespaces are `ID-NAME`, so it cannot change. */
export const clusterIdLength = 10

/** The logical cluster that holds LogicalClusters, MemberClusters and Placements when there is no host. */
export const rootClusterName = 'root' as ClusterName

const namePattern = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/
const idPattern = /^[a-z][a-z2-7]{9}$/

/** The text as a ClusterName (an RFC 1123 label); undefined if it is not valid. */
export function tryClusterName(text: string): ClusterName | undefined {
  return namePattern.test(text) ? (text as ClusterName) : undefined
}

/** The text as a ClusterId; undefined if it is not valid. */
export function tryClusterId(text: string): ClusterId | undefined {
  return idPattern.test(text) ? (text as ClusterId) : undefined
}

/**
 * The id of the LogicalCluster with this uid: 49 bits of its SHA-256 in base32, first character a letter. Derived, so
 * that a reader of the object knows the id without waiting for its status.
 */
export function clusterIdOf(uid: string): ClusterId {
  const letters = 'abcdefghijklmnopqrstuvwxyz234567'
  const digest = createHash('sha256').update(`kcp.dev/logicalcluster/${uid}`).digest()
  let id = letters[(digest[0] ?? 0) % 26] ?? 'a'
  for (let i = 1; i < clusterIdLength; i++) id += letters[(digest[i] ?? 0) & 31] ?? 'a'
  return id as ClusterId
}
