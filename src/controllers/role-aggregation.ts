// Keeps the rules of aggregated ClusterRoles (admin, edit, view and tenants' own) current. The ClusterRoles that every
// logical cluster is created with are aggregated already, so only ClusterRoles of tenants cause work.
import { groupResourceText } from '#apimachinery/meta/index.ts'
import { createKeyQueue, runController } from '#reconcile/index.ts'
import type { ControllerContext } from './controller-context.ts'
import { clusterRoles } from './resources.ts'
import { AggregationVisits } from './aggregate-roles.ts'

const bootstrapping = 'kubernetes.io/bootstrapping'

/** Watches the ClusterRoles of all logical clusters. A key of the queue is the id of a logical cluster. */
export async function startRoleAggregation({ graph, clientOf, log, signal }: ControllerContext): Promise<void> {
  using queue = createKeyQueue()
  const stop = graph.follow(groupResourceText(clusterRoles), ({ key, labels }) => {
    if (labels?.[bootstrapping] !== 'rbac-defaults') queue.add(key.cluster)
  })
  const visits = new AggregationVisits({ graph, log })
  await runController({
    name: 'role-aggregation',
    queue,
    log,
    signal,
    workers: 1,
    reconcile: async (id, visit) => {
      const client = clientOf(id)
      if (client !== undefined) await visits.visit(id, client, visit)
    },
  })
  stop()
}
