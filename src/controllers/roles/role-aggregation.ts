// Keeps aggregated ClusterRoles (admin, edit, view and tenants' own) as the ClusterRoles they gather. Those a logical
// cluster is born with are gathered already, so only the ClusterRoles that tenants add are followed.
import { groupResourceText, type KubeObject } from '../../apimachinery/meta/index.ts'
import { isStatusError } from '../../apimachinery/status/index.ts'
import type { KubeClient } from '../../client/index.ts'
import { createKeyQueue, runController } from '../../reconcile/index.ts'
import { clusterRoles } from '../resources.ts'
import type { Loop, LoopContext } from '../start-controllers.ts'
import { aggregatedRules, isAggregated, sameRules } from './aggregate-rules.ts'

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
      if (client !== undefined) await aggregateRoles(client, visit)
    },
  })
  stop()
}

/** Brings every aggregated ClusterRole of one logical cluster up to date; one that gathers from another in the next round. */
export async function aggregateRoles(client: KubeClient, signal: AbortSignal): Promise<void> {
  // view feeds edit feeds admin: three rounds settle the longest chain there is by default, and ten end a circle.
  for (let round = 0; round < 10; round++) {
    const all = await listRoles(client, signal)
    let changed = false
    for (const role of all.filter(isAggregated)) {
      const rules = aggregatedRules(role, all)
      if (sameRules(role['rules'], rules)) continue
      await client.update(clusterRoles, { ...role, rules }, { signal })
      changed = true
    }
    if (!changed) return
  }
}

async function listRoles(client: KubeClient, signal: AbortSignal): Promise<KubeObject[]> {
  try {
    const { items } = await client.list(clusterRoles, { signal })
    // Items of a list carry neither: an update needs both.
    return items.map((item) => ({ ...item, apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole' }))
  } catch (error) {
    // The logical cluster has gone.
    if (isStatusError(error, 'NotFound')) return []
    throw error
  }
}
