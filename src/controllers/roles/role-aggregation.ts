// Keeps the rules of aggregated ClusterRoles (admin, edit, view and tenants' own) current. The ClusterRoles that every
// logical cluster is created with are aggregated already, so only ClusterRoles of tenants cause work.
import { groupResourceText } from '../../apimachinery/meta/index.ts'
import type { KubeClient } from '../../client/index.ts'
import type { ObjectGraph } from '../../object-graph/index.ts'
import { createKeyQueue, runController } from '../../reconcile/index.ts'
import type { ControllerContext } from '../context/controller-context.ts'
import { clusterRoles } from '../context/resources.ts'
import { aggregatedRules, aggregatesFrom, isAggregated, sameRules } from './aggregate-rules.ts'

const bootstrapping = 'kubernetes.io/bootstrapping'

/** Watches the ClusterRoles of all logical clusters. A key of the queue is the id of a logical cluster. */
export async function startRoleAggregation({ graph, clientOf, log, signal }: ControllerContext): Promise<void> {
  using queue = createKeyQueue()
  const stop = graph.follow(groupResourceText(clusterRoles), ({ key, object }) => {
    if (object()?.metadata.labels?.[bootstrapping] !== 'rbac-defaults') queue.add(key.cluster)
  })
  await runController({
    name: 'role-aggregation',
    queue,
    log,
    signal,
    workers: 1,
    reconcile: async (id, visit) => {
      const client = clientOf(id)
      if (client !== undefined) await aggregateRoles(id, client, graph, visit)
    },
  })
  stop()
}

/** Upstream's name: clients know who fills in the rules. */
const fieldManager = 'clusterrole-aggregation-controller'

/** Updates every aggregated ClusterRole of one logical cluster. A role that aggregates another one follows a round later. */
async function aggregateRoles(id: string, client: KubeClient, graph: ObjectGraph, signal: AbortSignal): Promise<void> {
  const resource = groupResourceText(clusterRoles)
  // Three rounds are enough for the default chain view, edit, admin. The bound ends roles that aggregate each other.
  for (let round = 0; round < 10; round++) {
    const marked = await graph.select(id, resource, ({ contains }) => contains('"aggregationRule"'), signal)
    const aggregated = marked.filter(isAggregated)
    const isSource = aggregatesFrom(aggregated)
    const sources = await graph.select(id, resource, ({ labels }) => isSource(labels), signal)
    let changed = false
    for (const role of aggregated) {
      const rules = aggregatedRules(role, sources)
      if (sameRules(role['rules'], rules)) continue
      const { apiVersion, kind, metadata } = role
      const { name = '' } = metadata
      const config = { apiVersion, kind, metadata: { name }, ...(rules.length === 0 ? {} : { rules }) }
      await client.patch(clusterRoles, { name }, 'apply', config, { signal, force: true, fieldManager })
      changed = true
    }
    if (!changed) return
  }
}
