// Finds out whether the logical cluster of a request has moved to another installation, or has come from one.
import { badRequest, forbidden, serviceUnavailable } from '#apimachinery/status/index.ts'
import { frozenMark, markOf, thaw } from '#virtualapi/endpoints/forwarded/transfer-marks.ts'
import type { Exchange } from '#virtualapi/request/exchange.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { ServerDependencies } from './dependencies.ts'
import { wantedIdentity } from './impersonate.ts'

const logicalClusterResource = { group: 'kcp.dev', resource: 'logicalclusters' }

type Dependencies = Pick<ServerDependencies, 'watchCache' | 'moved' | 'clock'>

/**
 * Sets `move` of the exchange. Costs nothing but a look at the LogicalCluster unless that says that it moves. The
 * installation itself sees what is here.
 */
export function followMove(exchange: Exchange, dependencies: Dependencies): Promise<void> | undefined {
  const { cluster, user } = exchange
  if (cluster?.transfer === undefined || user.realm.kind === 'installation') return undefined
  return follow(exchange, cluster, dependencies)
}

async function follow(exchange: Exchange, cluster: LogicalCluster, dependencies: Dependencies): Promise<void> {
  const { watchCache, moved, clock } = dependencies
  const { signal, request, info } = exchange
  const objects = await watchCache.cluster(cluster.id, { signal })
  if (cluster.transfer?.role === 'target') {
    if (markOf(objects, 'resumed')?.id === cluster.transfer.id) exchange.move = 'arrived'
    return
  }
  const frozen = frozenMark(objects)
  if (frozen === undefined) return
  if (frozen.committed !== true) {
    // The command ended without a word, and this process began later: the logical cluster takes writes again.
    if (clock.now() >= Date.parse(frozen.until)) await thaw(objects, signal).catch(() => undefined)
    return
  }
  // Authorization here has no say any more, so it is the place to refuse an identity of another logical cluster.
  const { realm } = exchange.user
  if (realm.kind === 'cluster' && realm.id !== cluster.id)
    throw forbidden(
      logicalClusterResource,
      cluster.name,
      'it has moved, and users of other logical clusters have no way to it',
    )
  if (info.through !== undefined)
    throw serviceUnavailable(`logical cluster "${cluster.name}" has moved to another installation`)
  if (wantedIdentity(request.rawHeaders) !== undefined)
    throw badRequest(`impersonation is not passed on to the new place of "${cluster.name}": use a kubeconfig of it`)
  await moved.leave(objects, signal)
  exchange.move = 'left'
}
