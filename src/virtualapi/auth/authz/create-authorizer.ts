// Authorization: RBAC inside a logical cluster, owners from its spec, and requests over all logical clusters.
import type { WatchCache } from '#store/watch-cache/index.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import { ancestryOf } from '#virtualapi/request/hierarchy.ts'
import type { ClusterDirectory, LogicalCluster, OwnerSubject } from '#virtualapi/request/logical-cluster.ts'
import type { RequestInfo } from '#virtualapi/request/request-info.ts'
import type { Attributes, Authorizer, Decision, AuthorizationContext } from '#virtualapi/request/authorizer.ts'
import { createClusterPolicies } from './cluster-policies.ts'
import { CompiledRules } from './compiled-rules.ts'
import { decide } from './decide.ts'
import { InheritingPolicy } from './inheriting-policy.ts'
import { heldRules, type HeldRules } from './held-rules.ts'
import type { LayeredPolicy, Policy } from './policy.ts'
import type { PolicyRule } from './policy-rules.ts'
import { CompiledRoles } from './stored-role.ts'
import { fromBelow, isAncestorName } from '#virtualapi/auth/authn/ancestor-names.ts'
import { hostName } from '#virtualapi/auth/authn/host-names.ts'

/** Group of our own processes, which have certificates of the installation. */
export const kcpSystemGroup = 'kcp:system'
/** Group of the installation whose members may read all logical clusters at once, and nothing else. */
export const wildcardReadersGroup = 'kcp:wildcard-readers'
/** Group of the installation whose members may read the metrics of the server, and nothing else. */
export const metricsReadersGroup = 'kcp:metrics-readers'
const mastersGroup = 'system:masters'

/** An Authorizer that also gives the rules behind its decisions, for review APIs and escalation checks. */
export interface RbacAuthorizer extends Authorizer {
  /** True if the user may do everything in `cluster`, regardless of RBAC. */
  isSuperuser(user: UserInfo, cluster: LogicalCluster): boolean
  /** All rules that are granted to `user` in `namespace` (empty: at the cluster scope), role by role. */
  rulesFor(user: UserInfo, namespace: string, where: AuthorizationContext): Promise<HeldRules>
  /** The rules of a role; undefined if it does not exist. */
  roleRules(
    role: RoleReference,
    cluster: LogicalCluster,
    signal: AbortSignal,
  ): Promise<readonly PolicyRule[] | undefined>
  /** The user of an access review: a user of an ancestor, if its name says so, as authentication would give it. */
  reviewed(user: UserInfo, cluster: LogicalCluster): UserInfo
  /** True if `user` may learn that a logical cluster does not exist (404 instead of 403). */
  mayKnowAll(user: UserInfo): boolean
}

export interface RoleReference {
  readonly kind: string
  readonly name: string
  /** Namespace of the binding; empty for a ClusterRoleBinding. */
  readonly namespace: string
}

/** The rules of cluster-admin. */
export const allRules: readonly PolicyRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
]
const everything: HeldRules = { roles: [new CompiledRules(allRules)], problems: [], isComplete: true }
const none: HeldRules = { roles: [], problems: [], isComplete: true }

const openPaths = /^\/(healthz|livez|readyz|version)\/?$/

/**
 * True for health and version, which every client may read without credentials. They reveal nothing of a logical
 * cluster.
 */
export function isOpenPath({ verb, path }: Attributes): boolean {
  return path !== undefined && (verb === 'get' || verb === 'head') && openPaths.test(path)
}

/** `directory` finds ancestors; absent: no logical cluster has any. */
export function createAuthorizer({
  watchCache,
  directory = { byName: () => undefined },
}: {
  readonly watchCache: Pick<WatchCache, 'cluster'>
  readonly directory?: Pick<ClusterDirectory, 'byName'>
}): RbacAuthorizer {
  const policies = createClusterPolicies(watchCache)
  const compiled = new CompiledRoles()
  const policyOf = (cluster: LogicalCluster, signal: AbortSignal): Promise<Policy> => {
    if (cluster.parent === undefined) return policies.of(cluster.id, signal)
    const { ancestors } = ancestryOf(cluster, directory)
    const ids = [cluster.id, ...ancestors.map(({ id }) => id)]
    return policies
      .ofAll(ids, signal)
      .then((all) => new InheritingPolicy(ancestors, all as readonly [LayeredPolicy, ...LayeredPolicy[]]))
  }
  const isForeign = (user: UserInfo, cluster: LogicalCluster): boolean =>
    isOfOther(user, cluster) && !isOfAncestor(user, cluster, directory)
  return {
    authorize(user, attributes, { cluster, work, signal }) {
      if (isOpenPath(attributes)) return allow('')
      if (isAnonymous(user)) return deny('')
      // Defence in depth: authentication should have refused an identity of another logical cluster already.
      if (isForeign(user, cluster)) return deny('')
      const reason = superuserReason(user, cluster)
      if (reason !== undefined) return allow(reason)
      return policyOf(cluster, signal).then((policy) => decide({ policy, compiled, work, signal }, user, attributes))
    },
    authorizeAll,
    isSuperuser: (user, cluster) => !isForeign(user, cluster) && superuserReason(user, cluster) !== undefined,
    rulesFor: async (user, namespace, { cluster, work, signal }) => {
      if (isAnonymous(user) || isForeign(user, cluster)) return none
      if (superuserReason(user, cluster) !== undefined) return everything
      return heldRules({ policy: await policyOf(cluster, signal), compiled, work, signal }, user, namespace)
    },
    roleRules: async ({ kind, name, namespace }, cluster, signal) => {
      const role = (await policyOf(cluster, signal)).roleOf(kind, name, namespace)
      return role === undefined ? undefined : compiled.rulesOf(role).rules
    },
    reviewed: (user, cluster) =>
      cluster.parent === undefined ? user : fromBelow(user, ancestryOf(cluster, directory).ancestors),
    mayKnowAll: isInstallationAdmin,
  }
}

/** Why this user may do everything in `cluster` (may be empty); undefined: RBAC decides. */
function superuserReason(user: UserInfo, cluster: LogicalCluster): string | undefined {
  if (isInstallationAdmin(user)) return 'administrator of the installation'
  if (user.realm.kind === 'cluster' && user.realm.id === cluster.id && user.groups.includes(mastersGroup)) return ''
  return isOwner(user, cluster.owners) ? 'owner of the logical cluster' : undefined
}

function isInstallationAdmin({ realm, groups }: UserInfo): boolean {
  return realm.kind === 'installation' && (groups.includes(mastersGroup) || groups.includes(kcpSystemGroup))
}

/**
 * True for users of another logical cluster, and for host users with a name reserved for logical clusters (see
 * hostName).
 */
function isOfOther({ realm, name, groups }: UserInfo, cluster: LogicalCluster): boolean {
  if (realm.kind === 'cluster') return realm.id !== cluster.id
  const isReserved = (text: string): boolean => text.startsWith('system:') && text !== 'system:authenticated'
  return realm.kind === 'host' && (isReserved(name) || groups.some(isReserved))
}

/** True for a user that authentication has taken from an ancestor of the logical cluster. */
function isOfAncestor(
  { realm, home }: UserInfo,
  cluster: LogicalCluster,
  directory: Pick<ClusterDirectory, 'byName'>,
): boolean {
  if (home === undefined || realm.kind !== 'cluster' || cluster.parent === undefined) return false
  return ancestryOf(cluster, directory).ancestors.some(({ id }) => id === realm.id)
}

function isAnonymous(user: UserInfo): boolean {
  return user.name === 'system:anonymous' || user.groups.includes('system:unauthenticated')
}

/** Paths outside logical clusters that any authenticated client may read; the aggregator reads them. */
const discoveryPaths = /^\/(api|apis|apis\/virtual\.kcp\.dev(\/v1alpha1)?|openapi\/v[23](\/.*)?)\/?$/
const readVerbs = new Set(['get', 'list', 'watch', 'head'])

function authorizeAll(user: UserInfo, info: RequestInfo): Decision {
  const path = info.target.kind === 'path' ? info.target.path : undefined
  switch (info.cluster.kind) {
    case 'all': {
      if (!readVerbs.has(info.verb)) return deny('all logical clusters at once can only be read')
      if (isInstallationAdmin(user)) return allow('administrator of the installation')
      const isReader = user.realm.kind === 'installation' && user.groups.includes(wildcardReadersGroup)
      return isReader ? allow(`member of group "${wildcardReadersGroup}"`) : deny('')
    }
    // The logical cluster does not exist: refused as if it did, except for administrators of the installation.
    case 'one':
      return isInstallationAdmin(user) ? allow('administrator of the installation') : deny('')
    case 'none': {
      if (path !== undefined && isOpenPath({ verb: info.verb, path })) return allow('open to everybody')
      if (isInstallationAdmin(user)) return allow('administrator of the installation')
      const isRead = info.verb === 'get' || info.verb === 'head'
      const isScraper = user.realm.kind === 'installation' && user.groups.includes(metricsReadersGroup)
      if (isScraper && isRead && path === '/metrics') return allow(`member of group "${metricsReadersGroup}"`)
      const isDiscovery = path !== undefined && isRead && discoveryPaths.test(path)
      return isDiscovery && !isAnonymous(user) ? allow('discovery') : deny('')
    }
  }
}

function allow(reason: string): Decision {
  return { allowed: true, reason }
}

function deny(reason: string): Decision {
  return { allowed: false, reason }
}

/**
 * True if the user is an owner. A user of the logical cluster itself never is: their `alice` is not the host's `alice`.
 * An owner `cluster:NAME:USER` is a user of an ancestor.
 */
function isOwner(user: UserInfo, owners: readonly OwnerSubject[]): boolean {
  if (user.realm.kind === 'cluster')
    return user.home !== undefined && owners.some((owner) => isAncestorOwner(user, owner))
  return owners.some((owner) => {
    if (isAncestorName(owner.name)) return false
    switch (owner.kind) {
      case 'User':
        return user.name === hostName(owner.name)
      case 'Group':
        return user.groups.includes(hostName(owner.name))
      case 'ServiceAccount':
        return (
          owner.namespace !== undefined &&
          user.name === hostName(`system:serviceaccount:${owner.namespace}:${owner.name}`)
        )
    }
  })
}

function isAncestorOwner({ name, groups }: UserInfo, owner: OwnerSubject): boolean {
  if (!isAncestorName(owner.name)) return false
  return owner.kind === 'User' ? name === owner.name : owner.kind === 'Group' && groups.includes(owner.name)
}
