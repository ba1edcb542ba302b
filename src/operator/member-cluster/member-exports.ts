// The APIs that a member exports, as its syncer needs them: which, to whom, and where to say what came of it.
import type { DeepReadonly, SharedInformers } from '../../client/index.ts'
import {
  definitionName,
  isConditionTrue,
  logicalClusters,
  matches,
  memberClusters,
  type ExportedApi,
  type LogicalCluster,
  type MemberCluster,
} from '../../crds/index.ts'

/** What a syncer says of the APIs that its member exports. */
export interface ExportReport {
  /** What stands in the way, one sentence each; bounded. */
  readonly problems: readonly string[]
  /** Names of definitions of which nothing is left. */
  readonly withdrawn: readonly string[]
}

export interface MemberExports {
  readonly apis: readonly Readonly<ExportedApi>[]
  /** Exported before, and being withdrawn. */
  readonly former: readonly Readonly<ExportedApi>[]
  /** The logical clusters that exist, by name. */
  clusters(): readonly string[]
  /** Whether the logical cluster may use the member. */
  admits(cluster: string): boolean
  /** Calls the listener with a logical cluster whose admission may have changed. Returns the function that ends it. */
  onAdmission(listener: (cluster: string) => void): () => void
  /** Whether there is a member of this name. */
  isMember(name: string): boolean
  report(report: ExportReport): void
}

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
      return isConditionTrue(object, 'Ready') && matches(selector, object.metadata.labels)
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
