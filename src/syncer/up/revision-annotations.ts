// The annotations of a workload that the objects of its history carry. `kubectl rollout undo` replaces those of the
// workload by those of the revision that it goes back to.
import { clustersAnnotation, isLocalAnnotation, rebalanceAnnotation } from '#crds/index.ts'
import type { CachedObject } from '#syncer/context/resources.ts'

/** If the annotations have more bytes, none is recorded: the object of the revision has a template to carry, too. */
const maxRecordedBytes = 65_536

/** Wishes about placement belong to the workload, not to a revision: all revisions have the present ones. */
const wishes = [clustersAnnotation, rebalanceAnnotation] as const

type Annotations = Readonly<Record<string, string>>

/** The annotations that the object of a revision should have, null for one that it should not; empty if it has them. */
export function revisionAnnotations(
  workload: CachedObject,
  known: Annotations,
  { isPresent }: { readonly isPresent: boolean },
): Record<string, string | null> {
  const own = workload.metadata.annotations ?? {}
  const wanted = [
    ...(isPresent ? recorded(own) : []),
    ...wishes.map((name): [string, string | null] => [name, own[name] ?? null]),
  ]
  return Object.fromEntries(wanted.filter(([name, value]) => (known[name] ?? null) !== value))
}

/** All annotations but those of controllers and of `kubectl apply`, as the Deployment controller copies them. */
function recorded(own: Annotations): [string, string | null][] {
  const found = Object.entries(own).filter(([name]) => !isLocalAnnotation(name))
  return JSON.stringify(found).length > maxRecordedBytes ? [] : found
}
