// Names of logical clusters that have been deleted. A watch over all of them may be behind: the last events of a
// logical cluster need its name after the directory has forgotten it, or the client would keep the objects for ever.
import type { ClusterId } from '#apimachinery/meta/index.ts'
import type { ClusterDirectory } from '#virtualapi/request/logical-cluster.ts'

/** Later deletions push out earlier ones. A watch that is so far behind has been ended long before. */
const maxNames = 10_000

const namesOf = new WeakMap<ClusterDirectory, Map<ClusterId, string>>()

/** Begins to remember the names of deleted logical clusters, once for a directory. */
export function rememberNames(directory: ClusterDirectory): void {
  if (namesOf.has(directory)) return
  const names = new Map<ClusterId, string>()
  namesOf.set(directory, names)
  directory.onChange(({ before, after }) => {
    if (before === undefined || after !== undefined) return
    names.set(before.id, before.name)
    const oldest = names.size > maxNames ? names.keys().next().value : undefined
    if (oldest !== undefined) names.delete(oldest)
  })
}

/** The name of a logical cluster, also of one that was deleted since `rememberNames`; empty if it is not known. */
export function nameOf(directory: ClusterDirectory, id: ClusterId): string {
  return directory.byId(id)?.name ?? namesOf.get(directory)?.get(id) ?? ''
}
