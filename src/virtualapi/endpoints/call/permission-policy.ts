// The maximal permission policy of an APIExport: users of a consumer may do with a bound resource at most what RBAC of
// the export's logical cluster gives to their names with a prefix, whatever their own logical cluster allows.
import { forbiddenError } from '#virtualapi/auth/authz/index.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import type { EndpointDependencies } from './dependencies.ts'
import type { EndpointCall } from './endpoint-call.ts'

/** As in the kcp project. */
const prefix = 'apis.kcp.io:binding:'

/** Rejects with 403 if the policy of the export refuses the request. Only for shared definitions. */
export async function requirePermitted(call: EndpointCall<EndpointDependencies>): Promise<void> {
  const { exchange, objects, definition, request, dependencies } = call
  const { user, work, signal } = exchange
  if (user.realm.kind === 'installation' || exchange.view !== undefined) return
  const provider = dependencies.viewSource.policyOf(objects, definition.storageKey)
  if (provider === undefined) return
  const { group, version, resource, subresource, namespace, name } = request
  const attributes = {
    verb: exchange.info.verb,
    resource: { group, version, resource, subresource, namespace, name },
  }
  const where = { cluster: provider, work, signal }
  const { allowed } = await dependencies.authorizer.authorize(prefixed(user, provider.id), attributes, where)
  if (!allowed)
    throw forbiddenError(user, attributes, 'the maximal permission policy of the APIExport does not allow it')
}

function prefixed({ name, groups }: UserInfo, id: ClusterId): UserInfo {
  return {
    name: prefix + name,
    groups: groups.map((group) => prefix + group),
    extra: {},
    realm: { kind: 'cluster', id },
  }
}
