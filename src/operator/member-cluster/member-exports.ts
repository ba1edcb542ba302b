// The facts that a member's syncer needs about the APIs that the member exports, from its MemberCluster and the logical
// clusters.
import type { DeepReadonly, SharedInformers } from '#client/index.ts'
import {
  definitionName,
  logicalClusters,
  matches,
  memberClusters,
  type ExportReport,
  type LogicalCluster,
  type MemberCluster,
  type MemberExports,
} from '#crds/index.ts'

/** Undefined if the member exports nothing, and has nothing to withdraw. */
export function memberExports(
  { metadata: { name }, spec, status }: DeepReadonly<MemberCluster>,
  informers: SharedInformers,
  report: (report: ExportReport) => void,
): MemberExports | undefined {
  const apis = spec?.exportedAPIs ?? []
  const names = new Set(apis.map(definitionName))
  const former = (status?.exportedAPIs ?? []).filter((api) => !names.has(definitionName(api)))
  if (apis.length === 0 && former.length === 0) return undefined
  const members = informers.of<MemberCluster>(memberClusters)
  const clusters = informers.of<LogicalCluster>(logicalClusters)
  return {
    apis,
    former,
    clusters: () => clusters.store.list().map(({ metadata }) => metadata.name),
    admits(cluster) {
      const object = clusters.store.get(cluster)
      const selector = members.store.get(name)?.spec?.logicalClusterSelector
      if (object === undefined || object.metadata.deletionTimestamp !== undefined) return false
      // Ready or not: what is in the member stays while the API of the logical cluster is not served.
      return matches(selector, object.metadata.labels)
    },
    onAdmission(listener) {
      const ends = [
        clusters.onChange(({ key }) => listener(key)),
        members.onChange(({ key, before, after }) => {
          const selectors = [before, after].map((one) => JSON.stringify(one?.spec?.logicalClusterSelector))
          if (key === name && selectors[0] !== selectors[1])
            for (const { metadata } of clusters.store.list()) listener(metadata.name)
        }),
      ]
      return () => {
        for (const end of ends) end()
      }
    },
    isMember: (other) => members.store.get(other) !== undefined,
    report,
  }
}
