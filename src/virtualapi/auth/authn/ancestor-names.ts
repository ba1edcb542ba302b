// Names of users of an ancestor in the logical clusters below it. The prefix separates them from users of the same name
// there: `alice` of acme is `cluster:acme:alice` below acme, and group `system:masters` of acme is
// `cluster:acme:system:masters`, which has no rights. Only `system:authenticated` keeps its name.
import type { ClusterName } from '#apimachinery/meta/index.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'

const prefix = 'cluster:'

/** True for names that only users of ancestors have. No certificate of a logical cluster itself may contain one. */
export function isAncestorName(name: string): boolean {
  return name.startsWith(prefix)
}

/** The name of a user or group of an ancestor in the logical clusters below it. Names of clusters have no colon. */
export function ancestorName(ancestor: ClusterName, name: string): string {
  return name === 'system:authenticated' ? name : `${prefix}${ancestor}:${name}`
}

/** The user of an ancestor as the logical clusters below it see it. */
export function belowOf(home: UserInfo, ancestor: LogicalCluster): UserInfo {
  let known = seen.get(home)
  if (known?.ancestor !== ancestor.name) {
    const groups = home.groups.map((group) => ancestorName(ancestor.name, group))
    known = { ancestor: ancestor.name, user: { ...home, name: ancestorName(ancestor.name, home.name), groups, home } }
    seen.set(home, known)
  }
  return known.user
}

/** A user is the same object while its certificate is in use, and caches find their entries by it. */
const seen = new WeakMap<UserInfo, { readonly ancestor: ClusterName; readonly user: UserInfo }>()

/**
 * The user as the ancestor `above[at]` sees it; undefined if it is no user there. `above`: the ancestors of the logical
 * cluster in which the user asks, the parent first.
 */
export function userIn(user: UserInfo, above: readonly LogicalCluster[], at: number): UserInfo | undefined {
  const { realm, home } = user
  // Names of host users are the same in all logical clusters.
  if (realm.kind !== 'cluster') return realm.kind === 'host' ? user : undefined
  const own = home === undefined ? -1 : above.findIndex(({ id }) => id === realm.id)
  if (own < at) return undefined
  return own === at ? home : user
}

/**
 * The user with its own names, if its name is that of a user of one of these ancestors; else the user unchanged. Only
 * for answers to questions about a user: a name alone authenticates nobody.
 */
export function fromBelow(user: UserInfo, ancestors: readonly LogicalCluster[]): UserInfo {
  const ancestor = ancestors.find(({ name }) => user.name.startsWith(`${prefix}${name}:`))
  if (ancestor === undefined) return user
  const start = `${prefix}${ancestor.name}:`
  const groups = user.groups.flatMap((group) => {
    if (group === 'system:authenticated') return [group]
    return group.startsWith(start) ? [group.slice(start.length)] : []
  })
  const realm = { kind: 'cluster', id: ancestor.id } as const
  return { ...user, realm, home: { ...user, name: user.name.slice(start.length), groups, realm } }
}
