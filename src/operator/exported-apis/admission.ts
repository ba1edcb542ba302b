// The admission of logical clusters to members, by their labels and those of their ancestors.
import type { DeepReadonly, Informer } from '#client/index.ts'
import { labelsInTree, matches, type LogicalCluster, type MemberCluster } from '#crds/index.ts'

type Clusters = Pick<Informer<LogicalCluster>, 'store'>

/** Whether the member admits the logical cluster, Ready or not. False if it is being deleted or does not exist. */
export function admitsCluster(
  member: DeepReadonly<MemberCluster> | undefined,
  cluster: string,
  { store }: Clusters,
): boolean {
  const object = store.get(cluster)
  if (object === undefined || object.metadata.deletionTimestamp !== undefined) return false
  const factsOf = ({ metadata: { labels }, spec }: typeof object) => ({ labels, parent: spec?.parentRef?.name })
  const labels = labelsInTree(factsOf(object), (name) => {
    const above = store.get(name)
    return above && factsOf(above)
  })
  return matches(member?.spec?.logicalClusterSelector, labels)
}

/** Calls the listener with each logical cluster whose admission may have changed. Returns the function that ends it. */
export function onAdmission(clusters: Informer<LogicalCluster>, listener: (cluster: string) => void): () => void {
  return clusters.onChange(({ key, before, after }) => {
    const [was, is] = [before, after].map((one) =>
      JSON.stringify([one?.metadata.labels, one?.metadata.deletionTimestamp, one?.spec?.parentRef, one === undefined]),
    )
    if (was === is) return
    listener(key)
    if (before === undefined) return
    // Labels hold for the logical clusters below, too.
    for (const { metadata, spec } of clusters.store.list()) if (spec?.parentRef !== undefined) listener(metadata.name)
  })
}
