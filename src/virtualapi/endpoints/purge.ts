// `DELETE /clusters/NAME`: drops all that is stored of a logical cluster. The last step of its deletion, for our operator.
import { forbidden, pathNotFound } from '../../apimachinery/status/index.ts'
import { jsonDocument } from '../codec/answers.ts'
import type { Answer, Exchange } from '../server/exchange.ts'
import type { ServerParts } from '../server/parts.ts'

/** Only for the installation itself, and only where the LogicalCluster is being deleted. */
export async function purge(exchange: Exchange, { hub }: ServerParts): Promise<Answer> {
  const { cluster, user, signal } = exchange
  if (user.realm.kind !== 'installation')
    throw forbidden({ group: '', resource: '' }, '', 'only the operator may drop a logical cluster')
  if (cluster === undefined) throw pathNotFound()
  if (!cluster.deleting)
    throw forbidden(
      { group: 'kcp.dev', resource: 'logicalclusters' },
      cluster.name,
      'it is not being deleted; delete the LogicalCluster',
    )
  await hub.deleteCluster(cluster.id, { signal })
  return jsonDocument({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' })
}
