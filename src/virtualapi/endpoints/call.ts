// What an endpoint gets: the exchange, the resource it is about, and what to write with.
import { invalid, notFound, pathNotFound } from '../../apimachinery/status/index.ts'
import type { ClusterObjects } from '../../store/hub/index.ts'
import { negotiate, type Representation } from '../codec/negotiate.ts'
import type { LogicalCluster } from '../clusters/directory.ts'
import type { ResourceTarget } from '../request/request-info.ts'
import type { Target } from '../registry/registry.ts'
import type { RequestContext, ResourceDefinition } from '../registry/resource-definition.ts'
import type { Exchange } from '../server/exchange.ts'
import type { ServerParts } from '../server/parts.ts'

/** A verb on a resource of one logical cluster. */
export interface Call {
  readonly exchange: Exchange
  readonly parts: ServerParts
  readonly cluster: LogicalCluster
  readonly objects: ClusterObjects
  readonly definition: ResourceDefinition
  readonly request: ResourceTarget
  readonly query: URLSearchParams
  readonly representation: Representation
  /** For the registry. */
  readonly target: Target
}

/** Finds the resource and gathers what its verbs need. Throws 404 for what is not served. */
export async function prepareCall(exchange: Exchange, parts: ServerParts, request: ResourceTarget): Promise<Call> {
  const { cluster, signal, info } = exchange
  if (cluster === undefined) throw pathNotFound()
  const objects = await parts.hub.cluster(cluster.id, { signal })
  const definition = parts.catalog.find(objects, request)
  if (definition === undefined) throw pathNotFound()
  if (definition.info.namespaced ? request.namespace === '' && request.name !== '' : request.namespace !== '')
    throw pathNotFound()
  const { deprecationWarning } = definition
  if (deprecationWarning !== undefined) exchange.warnings.push(deprecationWarning)
  const context: RequestContext = {
    cluster,
    objects,
    user: exchange.user,
    dryRun: isDryRun(info.query),
    warnings: exchange.warnings,
    now: parts.clock.now(),
  }
  return {
    exchange,
    parts,
    cluster,
    objects,
    definition,
    request,
    query: info.query,
    representation: negotiate(exchange.header('accept')),
    target: { definition, context, signal, namespace: request.namespace },
  }
}

/** Throws 422 for another word than All: who asks for a dry run in words we do not know must not get a real one. */
function isDryRun(query: URLSearchParams): boolean {
  const words = query.getAll('dryRun').filter((word) => word !== '')
  const unknown = words.find((word) => word !== 'All')
  if (unknown === undefined) return words.length > 0
  const message = `Unsupported value: ${JSON.stringify(unknown)}: supported values: "All"`
  const cause = { reason: 'FieldValueNotSupported', message, field: 'dryRun' }
  throw invalid({ group: 'meta.k8s.io', kind: 'CreateOptions' }, '', [cause])
}

/** The subresource's row, or 404 where the resource has none of this name. */
export function requireSubresource({ definition, request }: Call): void {
  if (!definition.info.subresources.some(({ name }) => name === request.subresource))
    throw notFound(definition.info, request.name)
}
