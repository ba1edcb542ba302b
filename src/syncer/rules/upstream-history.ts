// The history of a workload as it is upstream: the ReplicaSets of a Deployment.
import { templateAnnotation, templateOf, unchangingHash, workloadKindOfObject } from '#crds/index.ts'
import type { CachedObject } from '#syncer/context/resources.ts'
import type { Scope } from '#syncer/context/scope.ts'

/**
 * Upstream ReplicaSets of a workload by template hash. If two members created one at the same time, the first by name
 * counts.
 */
export function upstreamHistory(
  { context, cluster, namespace }: Scope,
  workload: CachedObject,
): Map<string, CachedObject[]> {
  const found = new Map<string, CachedObject[]>()
  const key = `${cluster}|${namespace}|${workload.metadata.uid}`
  for (const object of context.upstream.replicaSetsByOwner.of(key)) {
    const hash = object.metadata.annotations?.[templateAnnotation]
    if (hash === undefined || object.metadata.deletionTimestamp !== undefined) continue
    found.set(
      hash,
      [...(found.get(hash) ?? []), object].sort((a, b) => ((a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1)),
    )
  }
  return found
}

/** The annotation with the revision of the workload's present template, if it has a ReplicaSet upstream already. */
export function revisionOf(scope: Scope, workload: CachedObject): Record<string, string> {
  const { history } = workloadKindOfObject(workload) ?? {}
  if (history === undefined) return {}
  const [newest] = upstreamHistory(scope, workload).get(unchangingHash(templateOf(workload))) ?? []
  const revision = newest?.metadata.annotations?.[history.revisionAnnotation]
  return revision === undefined ? {} : { [history.revisionAnnotation]: revision }
}
