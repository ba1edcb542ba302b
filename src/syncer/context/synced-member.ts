// The member of a syncer, as MemberCluster and the operator describe it.
import type { DeepReadonly } from '#client/index.ts'
import type { ClassKindName, MemberClass, ServiceNetwork } from '#crds/index.ts'

export interface SyncedMember {
  readonly name: string
  /** memberIdOf the uid of its kube-system. */
  readonly id: string
  /** How its pods reach those of other members, and are reached. */
  readonly serviceNetwork: ServiceNetwork
  /** Prefixes of annotations that it allows besides the default ones. */
  readonly annotationPrefixes?: readonly string[]
  /** Its classes of this kind as they are now; undefined: not known. */
  readonly classesOf?: (kind: ClassKindName) => readonly DeepReadonly<MemberClass>[] | undefined
  /** Tells whether the member is lost; absent: it never is. */
  readonly loss?: MemberLoss
  /** Whether an admin accepts that the syncer deletes objects that are not known upstream any more. */
  readonly acceptsDeletions?: () => boolean
}

/**
 * Tells whether a member is lost. While it is lost, its syncer does not write from its cache on the member's pods and
 * EndpointSlices upstream.
 */
export interface MemberLoss {
  isLost(): boolean
  /** Calls the listener when a member that was lost answers again. Returns the function that ends it. */
  onReturn(listener: () => void): () => void
}
