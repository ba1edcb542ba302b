// The parties of one adoption: the namespace in the member, the namespace in the logical cluster, and the clients of
// both sides.
import type { ClusterId } from '#apimachinery/meta/index.ts'
import type { KubeClient } from '#client/index.ts'
import type { ExportedApi, ServiceNetwork } from '#crds/index.ts'
import type { OwnerCluster } from '#syncer/transform/down.ts'

export interface AdoptionRequest {
  /** The uid of the Adoption. */
  readonly adoption: string
  readonly member: {
    readonly name: string
    readonly serviceNetwork: ServiceNetwork
    readonly annotationPrefixes?: readonly string[]
    /** The APIs that it exports to logical clusters. */
    readonly exportedAPIs: readonly Readonly<ExportedApi>[]
  }
  /** The API of the member, with the rights of the syncer. */
  readonly downstream: KubeClient
  /** The namespace in the member. */
  readonly memberNamespace: string
  readonly cluster: string
  readonly clusterId: ClusterId
  /** The namespace in the logical cluster. */
  readonly namespace: string
  /** The API of the logical cluster, as the installation. */
  readonly upstream: KubeClient
  /** The level of Pod Security that the logical cluster enforces. */
  readonly podSecurity: string
  readonly signal: AbortSignal
}

/** The logical cluster as transforms need it: the namespace in the member keeps its name. */
export function ownerOf({ cluster, clusterId, member, memberNamespace }: AdoptionRequest): OwnerCluster {
  const { name, annotationPrefixes } = member
  return {
    cluster,
    clusterId,
    adoptedFrom: { member: name, namespace: memberNamespace },
    ...(annotationPrefixes && { annotationPrefixes }),
  }
}
