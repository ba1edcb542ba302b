// A MemberCluster as a ClusterProfile of SIG Multicluster (KEP-4322). Pure.
import type { Condition, KubeObject } from '#apimachinery/meta/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import { findCondition, memberState, type MemberCluster } from '#crds/index.ts'

export const clusterProfileGroup = 'multicluster.x-k8s.io'
/** Newest first: where the host serves several, the first is used. What we write is the same in all. */
export const clusterProfileVersions = ['v1alpha2', 'v1alpha1'] as const

/** Who manages these clusters: `spec.clusterManager.name`, and the label by which profiles of one manager are found. */
const clusterManager = 'kcp'
export const clusterManagerLabels = { 'x-k8s.io/cluster-manager': clusterManager } as const
const memberIdLabel = 'multicluster.x-k8s.io/inventory-member-id'

export interface ClusterProfile extends KubeObject {
  spec: { displayName?: string; clusterManager: { name: string } }
  status?: ClusterProfileStatus
}

export interface ClusterProfileStatus {
  conditions: Condition[]
  version?: { kubernetes?: string }
  properties: { name: string; value: string }[]
}

/**
 * The profile of this member, in the namespace and version given. It belongs to the MemberCluster, so that it is deleted
 * with it. Credentials are in none of it.
 */
export function clusterProfileOf(
  member: DeepReadonly<MemberCluster>,
  { namespace, version }: { readonly namespace: string; readonly version: string },
): ClusterProfile & { status: ClusterProfileStatus } {
  const { name, uid = '' } = member.metadata
  const { id, version: kubernetes } = member.status ?? {}
  const owner = { apiVersion: member.apiVersion, kind: member.kind, name, uid }
  return {
    apiVersion: `${clusterProfileGroup}/${version}`,
    kind: 'ClusterProfile',
    metadata: {
      name,
      namespace,
      labels: { ...clusterManagerLabels, ...(id !== undefined && { [memberIdLabel]: id }) },
      ownerReferences: [owner],
    },
    spec: { displayName: name, clusterManager: { name: clusterManager } },
    status: {
      conditions: [
        conditionOf(member, 'Ready', 'ControlPlaneHealthy'),
        conditionOf(member, 'Accepted', 'Joined'),
      ].filter((condition) => condition !== undefined),
      ...(kubernetes !== undefined && { version: { kubernetes } }),
      properties: propertiesOf(member),
    },
  }
}

/** The member's condition `from` under the name that the KEP has for it; undefined until the member was asked. */
function conditionOf(member: DeepReadonly<MemberCluster>, from: string, type: string): Condition | undefined {
  const found = findCondition(member, from)
  if (found === undefined) return undefined
  const { status, reason, message, lastTransitionTime } = found
  return { type, status, reason, message, lastTransitionTime }
}

function propertiesOf(member: DeepReadonly<MemberCluster>): ClusterProfileStatus['properties'] {
  const { nodes, allocatable } = member.status ?? {}
  const values: Record<string, string | undefined> = {
    'kcp.dev/state': memberState(member),
    'kcp.dev/nodes': nodes?.total.toString(),
    'kcp.dev/ready-nodes': nodes?.ready.toString(),
    'kcp.dev/allocatable-cpu': allocatable?.['cpu'],
    'kcp.dev/allocatable-memory': allocatable?.['memory'],
  }
  // The CRD refuses an empty value.
  return Object.entries(values).flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [{ name, value }],
  )
}
