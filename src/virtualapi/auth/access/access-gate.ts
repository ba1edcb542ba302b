// Who may use a member or a logical cluster through kcp: users with verb create on `memberclusters/access` or
// `logicalclusters/access` of group virtual.kcp.dev, in the API that has these objects.
import type { ClusterId } from '#apimachinery/meta/index.ts'
import { WorkBudget } from '#apimachinery/work-budget/index.ts'
import { accessGroup, accessSubresource, accessVersion } from '#crds/index.ts'
import type { FindBoundObject } from '#virtualapi/auth/authn/service-account-tokens.ts'
import type { RbacAuthorizer } from '#virtualapi/auth/authz/index.ts'
import type { Attributes } from '#virtualapi/request/authorizer.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import { anonymous, type UserInfo } from '#virtualapi/request/user-info.ts'
import type { AccessHolder, AccessTarget } from './access-tokens.ts'

/** Asks the host's RBAC. The names are those of the host. */
export type AskHost = (
  user: Pick<AccessHolder, 'name' | 'uid' | 'groups'>,
  attributes: Attributes,
  signal: AbortSignal,
) => Promise<boolean>

export interface AccessGateParts {
  readonly authorizer: Pick<RbacAuthorizer, 'authorize' | 'mayKnowAll'>
  /** The logical cluster with the objects, where there is no host. */
  readonly root: LogicalCluster | undefined
  /** Absent: users of a host have no access. */
  readonly askHost: AskHost | undefined
  readonly find: FindBoundObject
}

export class AccessGate {
  readonly #parts: AccessGateParts

  constructor(parts: AccessGateParts) {
    this.#parts = parts
  }

  /** The holder of a token for this user; undefined if the user cannot have one. */
  holderOf(user: UserInfo): AccessHolder | undefined {
    const realm = this.#realmOf(user)
    if (realm === undefined) return undefined
    const { name, uid, groups } = user
    return { realm, name, ...(uid !== undefined && { uid }), groups }
  }

  /** The holder as a user, for limits and the audit log. */
  userOf({ realm, name, uid, groups }: AccessHolder): UserInfo | undefined {
    const { root } = this.#parts
    const of = { name, ...(uid !== undefined && { uid }), groups, extra: {} }
    if (realm !== 'root') return { ...of, realm: { kind: realm } }
    return root && { ...of, realm: { kind: 'cluster', id: root.id } }
  }

  /** Whether the holder may use the target now. */
  async mayUse(
    holder: AccessHolder,
    target: Pick<AccessTarget, 'kind' | 'name'>,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { authorizer, root, askHost } = this.#parts
    const user = this.userOf(holder)
    if (user === undefined) return false
    switch (holder.realm) {
      case 'installation':
        return authorizer.mayKnowAll(user)
      case 'host':
        return (await askHost?.({ ...holder, ...inHost(holder) }, attributesOf(target), signal)) === true
      case 'root': {
        if (root === undefined || !(await this.#exists(holder, root.id, signal))) return false
        const work = new WorkBudget()
        return (await authorizer.authorize(user, attributesOf(target), { cluster: root, work, signal })).allowed
      }
    }
  }

  #realmOf(user: UserInfo): AccessHolder['realm'] | undefined {
    const { root, authorizer } = this.#parts
    if (user.name === anonymous.name || user.home !== undefined) return undefined
    if (user.realm.kind === 'cluster') return user.realm.id === root?.id ? 'root' : undefined
    if (user.realm.kind === 'installation') return authorizer.mayKnowAll(user) ? 'installation' : undefined
    return 'host'
  }

  /** False for a ServiceAccount that was deleted since the token was issued. */
  async #exists({ name, uid }: AccessHolder, cluster: ClusterId, signal: AbortSignal): Promise<boolean> {
    const [, , namespace, account] = /^(system:serviceaccount):([^:]+):([^:]+)$/.exec(name) ?? []
    if (namespace === undefined || account === undefined) return true
    const place = { resource: 'serviceaccounts', namespace, name: account } as const
    const found = await this.#parts.find(cluster, place, signal)
    return found !== undefined && found.deletedMs === undefined && (uid === undefined || found.uid === uid)
  }
}

const resources = { MemberCluster: 'memberclusters', LogicalCluster: 'logicalclusters' } as const

/** The right to use a cluster, as RBAC sees it. */
export function attributesOf({ kind, name }: Pick<AccessTarget, 'kind' | 'name'>): Attributes {
  const resource = {
    group: accessGroup,
    version: accessVersion,
    resource: resources[kind],
    subresource: accessSubresource,
    namespace: '',
    name,
  }
  return { verb: 'create', resource }
}

/** The names of a user in the host: the inverse of hostName. */
function inHost({ name, groups }: AccessHolder): Pick<AccessHolder, 'name' | 'groups'> {
  const original = (text: string): string => (text.startsWith('host:') ? text.slice('host:'.length) : text)
  return { name: original(name), groups: groups.map(original) }
}
