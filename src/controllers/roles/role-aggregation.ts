// Keeps aggregated ClusterRoles (admin, edit, view and tenants' own) as the ClusterRoles they gather. Those a logical
// cluster is born with are gathered already, so only the ClusterRoles that tenants add are followed.
import { groupResourceText } from '../../apimachinery/meta/index.ts'
import type { KubeClient } from '../../client/index.ts'
import { createKeyQueue, runController } from '../../reconcile/index.ts'
import type { ObjectGraph } from '../garbage/object-graph.ts'
import { clusterRoles } from '../resources.ts'
import type { Loop, LoopContext } from '../start-controllers.ts'
import { aggregatedRules, gathersFrom, isAggregated, sameRules } from './aggregate-rules.ts'

const bootstrapping = 'kubernetes.io/bootstrapping'

/** Follows the ClusterRoles of all logical clusters; the key is the id of the logical cluster. */
export async function startRoleAggregation({ graph, clusterOf, log, signal }: LoopContext): Loop {
  using queue = createKeyQueue()
  const stop = graph.follow(groupResourceText(clusterRoles), ({ place, object }) => {
    if (object()?.metadata.labels?.[bootstrapping] !== 'rbac-defaults') queue.add(place.cluster)
  })
  await runController({
    name: 'role-aggregation',
    queue,
    log,
    signal,
    workers: 1,
    reconcile: async (id, visit) => {
      const client = clusterOf(id)
      if (client !== undefined) await aggregateRoles(id, client, graph, visit)
    },
  })
  stop()
}

/** Brings every aggregated ClusterRole of one logical cluster up to date; one that gathers from another in the next round. */
async function aggregateRoles(id: string, client: KubeClient, graph: ObjectGraph, signal: AbortSignal): Promise<void> {
  const resource = groupResourceText(clusterRoles)
  // view feeds edit feeds admin: three rounds settle the longest chain there is by default, and ten end a circle.
  for (let round = 0; round < 10; round++) {
    const marked = await graph.select(id, resource, ({ contains }) => contains('"aggregationRule"'), signal)
    const aggregated = marked.filter(isAggregated)
    const isSource = gathersFrom(aggregated)
    const sources = await graph.select(id, resource, ({ labels }) => isSource(labels), signal)
    let changed = false
    for (const role of aggregated) {
      const rules = aggregatedRules(role, sources)
      if (sameRules(role['rules'], rules)) continue
      await client.update(clusterRoles, { ...role, rules }, { signal })
      changed = true
    }
    if (!changed) return
  }
}
