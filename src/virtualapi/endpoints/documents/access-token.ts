// `memberclusters/NAME/access` and `logicalclusters/NAME/access` of group virtual.kcp.dev: tokens for others to use a
// member or a logical cluster. They are served where these objects are: at the host's API, or in logical cluster `root`.
import { tryClusterName } from '#apimachinery/meta/index.ts'
import { badRequest, conflict, forbidden, methodNotServed, notFound } from '#apimachinery/status/index.ts'
import { timestamp } from '#async/index.ts'
import { accessGroup, accessSubresource, accessVersion } from '#crds/index.ts'
import type { AccessTarget } from '#virtualapi/auth/access/index.ts'
import { jsonDocument } from '#virtualapi/codec/responses.ts'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'
import type { ApiResponse, Exchange } from '#virtualapi/request/exchange.ts'
import type { PathTarget, ResourceTarget } from '#virtualapi/request/request-info.ts'
import { memberPrefix } from '#virtualapi/request/parse-request.ts'

const kinds: Readonly<Record<string, AccessTarget['kind']>> = {
  memberclusters: 'MemberCluster',
  logicalclusters: 'LogicalCluster',
}

export function isAccessRequest(target: ResourceTarget | PathTarget): target is ResourceTarget {
  if (target.kind !== 'resource' || target.group !== accessGroup || target.version !== accessVersion) return false
  const { subresource, namespace, rest, resource } = target
  return subresource === accessSubresource && namespace === '' && rest === '' && kinds[resource] !== undefined
}

/** True where tokens are issued: at the host's API, or in logical cluster `root`. */
export function issuesAccess({ info, cluster }: Exchange, { rootId }: EndpointDependencies): boolean {
  return info.cluster.kind === 'none' || (cluster !== undefined && cluster.id === rootId)
}

/** Issues a token. Rejects with 404 without such an object, and with 409 if the object gives nobody access. */
export async function issueAccess(
  exchange: Exchange,
  dependencies: EndpointDependencies,
  { resource, name }: ResourceTarget,
): Promise<ApiResponse> {
  if (exchange.info.method !== 'POST') throw methodNotServed()
  const kind = kinds[resource]
  const about = { group: accessGroup, resource }
  const found = kind && (await opened(kind, name, { exchange, dependencies }))
  if (kind === undefined || found === undefined) throw notFound(about, name)
  if (!found.isOpen) throw conflict(about, name, 'spec.access of the object names no ServiceAccount')
  const issued = await issue(exchange, dependencies, { kind, name, uid: found.uid })
  const { servingCa } = dependencies
  const body = {
    kind: 'AccessToken',
    apiVersion: `${accessGroup}/${accessVersion}`,
    metadata: { name },
    status: {
      token: issued.token,
      expirationTimestamp: timestamp(issued.expiresMs),
      path: kind === 'MemberCluster' ? `${memberPrefix}${name}` : `/clusters/${name}`,
      certificateAuthorityData: Buffer.from(servingCa).toString('base64'),
    },
  }
  return jsonDocument(body, { status: 201 })
}

async function issue({ user }: Exchange, { access }: EndpointDependencies, target: AccessTarget) {
  const holder = access.canHold(user)
  if (!holder)
    throw forbidden({ group: accessGroup, resource: target.kind }, target.name, 'this user cannot hold such a token')
  const issued = await access.issue(user, target)
  if (issued === undefined) throw badRequest('the user is in so many groups that a token with them would be too long')
  return issued
}

interface Opened {
  readonly uid: string
  readonly isOpen: boolean
}

async function opened(
  kind: AccessTarget['kind'],
  name: string,
  { exchange, dependencies }: { readonly exchange: Exchange; readonly dependencies: EndpointDependencies },
): Promise<Opened | undefined> {
  if (kind === 'MemberCluster') {
    const member = await dependencies.memberAccess?.find(name, exchange.signal)
    return member && { uid: member.uid, isOpen: member.account !== undefined }
  }
  const clusterName = tryClusterName(name)
  const cluster = clusterName && dependencies.directory.byName(clusterName)
  return cluster && { uid: cluster.uid, isOpen: cluster.access !== undefined }
}
