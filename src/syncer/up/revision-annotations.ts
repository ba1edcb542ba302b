// The annotations of a workload that the objects of its history carry. `kubectl rollout undo` replaces those of the
// workload by those of the revision that it goes back to.
import { clustersAnnotation, isLocalAnnotation, rebalanceAnnotation } from '#crds/index.ts'
import type { CachedObject } from '#syncer/context/resources.ts'

/** Of more than this nothing is recorded: the object of the revision has its own template to carry. */
const maxRecordedBytes = 65_536

/** What the tenant says about placement is of the workload and not of a revision: all have it as it is now. */
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

/** As the controller of Deployments does, all but what belongs to controllers, or to the text that was applied. */
function recorded(own: Annotations): [string, string | null][] {
  const found = Object.entries(own).filter(([name]) => !isLocalAnnotation(name))
  return JSON.stringify(found).length > maxRecordedBytes ? [] : found
}
