// `DELETE /clusters/NAME`: deletes all stored objects of a logical cluster. Our operator calls it as the last step of
// deletion.
import { isJsonObject } from '#apimachinery/meta/index.ts'
import { conflict, forbidden, pathNotFound } from '#apimachinery/status/index.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import { jsonDocument } from '#virtualapi/codec/responses.ts'
import { decodeBody } from '#virtualapi/codec/read-object.ts'
import type { RequestInfo } from '#virtualapi/request/request-info.ts'
import type { ApiResponse, Exchange } from '#virtualapi/request/exchange.ts'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'

/** True for `DELETE /clusters/NAME`. */
export function isPurge({ method, target }: Pick<RequestInfo, 'method' | 'target'>): boolean {
  return method === 'DELETE' && target.kind === 'path' && target.path === '/'
}

/** Throws 403 unless the installation itself asks and the LogicalCluster is being deleted, 409 for another uid. */
export async function purge(exchange: Exchange, { watchCache, directory }: EndpointDependencies): Promise<ApiResponse> {
  const { cluster, user, signal } = exchange
  if (user.realm.kind !== 'installation')
    throw forbidden({ group: '', resource: '' }, '', 'only the operator may drop a logical cluster')
  if (cluster === undefined) throw pathNotFound()
  await requireUid(exchange, cluster)
  // Asked again, and without a wait before the deletion: it may have been restored with its id since the request began.
  if (directory.byId(cluster.id)?.deleting !== true)
    throw forbidden(
      { group: 'kcp.dev', resource: 'logicalclusters' },
      cluster.name,
      'it is not being deleted; delete the LogicalCluster',
    )
  await watchCache.deleteCluster(cluster.id, { signal })
  return jsonDocument({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' })
}

/** Throws 409 if DeleteOptions name another uid: the LogicalCluster was recreated under the same name. */
async function requireUid({ request }: Exchange, { name, uid }: LogicalCluster): Promise<void> {
  const body = await request.body()
  if (body.length === 0) return
  const { value } = decodeBody(body, undefined)
  const preconditions = isJsonObject(value) ? value['preconditions'] : undefined
  const wanted = isJsonObject(preconditions) ? preconditions['uid'] : undefined
  if (typeof wanted !== 'string' || wanted === uid) return
  const message = `Precondition failed: UID in precondition: ${wanted}, UID in object meta: ${uid}`
  throw conflict({ group: 'kcp.dev', resource: 'logicalclusters' }, name, message)
}
