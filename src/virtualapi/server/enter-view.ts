// Authorization of requests through the view of an export. RBAC of the provider's logical cluster decides who may enter
// (`apiexports/content`); what the consumers have accepted decides what the request may see and do there.
import { pathNotFound, type StatusError } from '#apimachinery/status/index.ts'
import { apiBindings, apiExports } from '#crds/index.ts'
import { forbiddenError } from '#virtualapi/auth/authz/index.ts'
import type { Attributes } from '#virtualapi/request/authorizer.ts'
import type { Exchange } from '#virtualapi/request/exchange.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { ExportPath, ResourceTarget } from '#virtualapi/request/request-info.ts'
import type { RequestView } from '#virtualapi/request/request-view.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import type { ServerDependencies } from './dependencies.ts'

/** The documents of a view; all other paths belong to the server. */
const documents = /^\/(api|apis|openapi|version)(\/|$)/
const readMethods = new Set(['GET', 'HEAD'])

/** Sets the view and the user of the exchange. Rejects with 403 or 404. */
export async function enterView(exchange: Exchange, path: ExportPath, dependencies: ServerDependencies): Promise<void> {
  const { user } = exchange
  await requireContent(exchange, path, dependencies)
  const { provider } = exchange
  const view = provider && (await dependencies.viewSource.viewOf(provider, path.exportName, dependencies.clock.now()))
  if (view === undefined) throw pathNotFound()
  exchange.view = view
  const { cluster, info } = exchange
  const { target, method } = info
  // All other paths belong to the server, and the documents can only be read.
  if (target.kind === 'path' && (!documents.test(target.path) || !readMethods.has(method))) throw pathNotFound()
  if (info.cluster.kind === 'one') requireConsumer(exchange, view)
  if (cluster !== undefined) exchange.user = providerIn(cluster, view, user, path)
}

/** Rejects with 403 unless the provider's RBAC allows the verb on the content of the export. */
async function requireContent(exchange: Exchange, path: ExportPath, { authorizer }: ServerDependencies): Promise<void> {
  const { info, user, provider, work, signal } = exchange
  const verb = info.target.kind === 'path' ? 'get' : info.verb
  const { group, version, resource } = apiExports
  const content = { group, version, resource, subresource: 'content', namespace: '', name: path.exportName }
  const attributes: Attributes = { verb, resource: content }
  const decision =
    provider === undefined
      ? { allowed: authorizer.mayKnowAll(user), reason: '' }
      : await authorizer.authorize(user, attributes, { cluster: provider, work, signal })
  exchange.audit?.decided(decision)
  if (!decision.allowed) throw forbiddenError(user, attributes, decision.reason)
  if (provider === undefined) throw pathNotFound()
}

/** Throws 403 or 404 unless the view lets the request do this in its logical cluster. */
function requireConsumer(exchange: Exchange, view: RequestView): void {
  const { info, cluster } = exchange
  const { target } = info
  if (target.kind === 'path') {
    if (cluster === undefined || !isConsumer(view, cluster)) throw notBound(exchange)
    return
  }
  if (!view.concerns(target)) throw pathNotFound()
  if (cluster === undefined || !isConsumer(view, cluster)) throw notBound(exchange)
  const rule = view.ruleFor(cluster.id, target)
  if (rule?.allows(info.verb, target.subresource) === true) return
  throw forbiddenError(exchange.user, attributesOf(info.verb, target), refusal(target, rule !== undefined))
}

function isConsumer(view: RequestView, { id }: LogicalCluster): boolean {
  return view.ruleFor(id, apiBindings) !== undefined
}

/** The error for a logical cluster that has not bound the export; the same whether it exists or not. */
function notBound({ user, info }: Exchange): StatusError {
  const { target, verb } = info
  const attributes = target.kind === 'path' ? { verb, path: target.path } : attributesOf(verb, target)
  return forbiddenError(user, attributes, 'the logical cluster has not bound the export')
}

function refusal({ resource }: ResourceTarget, isPart: boolean): string {
  return isPart
    ? `the permission claim that the consumer has accepted does not include this verb on ${resource}`
    : `the consumer has not accepted the permission claim on ${resource} in its APIBinding`
}

function attributesOf(verb: string, target: ResourceTarget): Attributes {
  const { group, version, resource, subresource, namespace, name } = target
  return { verb, resource: { group, version, resource, subresource, namespace, name } }
}

/**
 * The provider as a user of the consumer. It has no rights by RBAC there, unless the consumer gives some to the group
 * of the export; so it cannot grant rights either.
 */
function providerIn({ id }: LogicalCluster, view: RequestView, user: UserInfo, path: ExportPath): UserInfo {
  return {
    name: `kcp:apiexport:${path.provider}:${path.exportName}`,
    groups: [`kcp:apiexport:${view.exportUid}`],
    extra: { 'kcp.io/provider-user': [user.name] },
    realm: { kind: 'cluster', id },
  }
}
