// The facts that a member's syncer needs about the APIs that the member exports, from its MemberCluster and the logical
// clusters.
import type { DeepReadonly } from '#client/index.ts'
import {
  definitionName,
  logicalClusters,
  memberClusters,
  type LogicalCluster,
  type MemberCluster,
  type MemberExports,
} from '#crds/index.ts'
import { admitsCluster, onAdmission } from '#operator/exported-apis/admission.ts'
import type { MemberApis } from '#operator/exported-apis/member-apis.ts'
import type { OperatorContext } from '#operator/framework/operator-context.ts'

/** Undefined if the member exports nothing, and has nothing to withdraw. */
export function memberExports(
  { metadata: { name }, spec, status }: DeepReadonly<MemberCluster>,
  {
    apis: shared,
    context,
    signal,
  }: {
    readonly apis: MemberApis
    readonly context: OperatorContext
    readonly signal: AbortSignal
  },
): MemberExports | undefined {
  const apis = (spec?.exportedAPIs ?? []) as MemberExports['apis']
  const names = new Set(apis.map(definitionName))
  const former = (status?.exportedAPIs ?? []).filter((api) => !names.has(definitionName(api)))
  if (apis.length === 0 && former.length === 0) return undefined
  const { informers } = context
  const members = informers.of<MemberCluster>(memberClusters)
  const clusters = informers.of<LogicalCluster>(logicalClusters)
  return {
    apis,
    former: former.map(({ group, resource }) => ({ group, resource })),
    admits(cluster) {
      // Ready or not: what is in the member stays while the API of the logical cluster is not served.
      return admitsCluster(members.store.get(name), cluster, clusters)
    },
    onAdmission(listener) {
      const ends = [
        onAdmission(clusters, listener),
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
    definitions: shared.definitions(context, signal),
    async objectsOf(api, life) {
      const objects = shared.objectsOf(api, context, signal)
      await objects.informer.synced(life)
      return objects
    },
    seen: (definition, seen) => shared.seen(name, definition, seen),
    withdrawn: (withdrawn) => shared.withdrawn(name, withdrawn),
  }
}
