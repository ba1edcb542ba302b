// The tree of objects that an object owns, by ownerReferences.
import type { Metadata } from '#console/kube/objects.ts'
import type { ResourceRef } from '#console/kube/paths.ts'

export interface Candidate {
  readonly resource: ResourceRef & { readonly kind: string }
  readonly metadata: Metadata
}

export interface OwnedNode extends Candidate {
  readonly owned: readonly OwnedNode[]
}

/** The most levels of the tree. Kubernetes' own kinds never have more; references in a circle end here. */
const maxDepth = 6

/** The objects whose owner has the uid, with those that they own. */
export function ownedBy(uid: string, candidates: readonly Candidate[], depth = 0): OwnedNode[] {
  if (uid === '' || depth >= maxDepth) return []
  return candidates
    .filter(
      ({ metadata }) => metadata.uid !== uid && metadata.ownerReferences?.some((owner) => owner.uid === uid) === true,
    )
    .map((candidate) => ({ ...candidate, owned: ownedBy(candidate.metadata.uid ?? '', candidates, depth + 1) }))
}
