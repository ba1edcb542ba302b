// The message of a syncer that suspends deletions because too many objects in its member are no longer known upstream,
// and the annotation with which an admin accepts the deletions.
import type { DeepReadonly, ObjectMeta } from '#apimachinery/meta/index.ts'

/**
 * On a MemberCluster: until this time (RFC 3339) its syncer deletes all objects that are not known upstream any more,
 * however many there are.
 */
export const acceptDeletionsAnnotation = 'kcp.dev/accept-deletions-until'

export interface SuspendedDeletions {
  /** Name of the logical cluster; undefined: the counts are of all logical clusters together. */
  readonly cluster: string | undefined
  /** Number of workloads with a copy in the member that are gone upstream without a reported deletion. */
  readonly missing: number
  /** Number of workloads with a copy in the member. */
  readonly total: number
}

/** Whether an admin accepts now that the syncer of this member deletes what is not known upstream any more. */
export function acceptsDeletions(
  { metadata }: { readonly metadata: DeepReadonly<ObjectMeta> },
  nowMs: number,
): boolean {
  // Without the annotation, or with text that is no time, the comparison with NaN is false.
  return nowMs < Date.parse(metadata.annotations?.[acceptDeletionsAnnotation] ?? '')
}

/** What the condition DeletionsSuspended of the member says, with what to do. */
export function suspendedDeletionsText(member: string, suspended: readonly SuspendedDeletions[]): string {
  const [first] = suspended
  const of = first?.cluster === undefined ? 'all logical clusters' : `logical cluster "${first.cluster}"`
  const more = suspended.length > 1 ? ` (and of ${suspended.length - 1} more logical clusters)` : ''
  return (
    `${first?.missing} of the ${first?.total} workloads of ${of}${more} that run there are gone upstream, but kcp saw no ` +
    `deletion of them: their copies keep running. Restore the workloads upstream, or allow kcp to delete the copies: ` +
    `kubectl annotate --overwrite memberclusters ${member} ${acceptDeletionsAnnotation}=TIME, an RFC 3339 time such as the end of this hour`
  )
}
