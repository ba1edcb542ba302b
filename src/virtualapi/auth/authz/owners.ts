// spec.owners of a LogicalCluster: subjects of the host that are cluster-admin inside it.
import { hostName } from '#virtualapi/auth/authn/host-names.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import type { OwnerSubject } from '#virtualapi/request/logical-cluster.ts'

/** True if the user is an owner. A user of a logical cluster never is: their `alice` is not the host's `alice`. */
export function isOwner(user: UserInfo, owners: readonly OwnerSubject[]): boolean {
  if (user.realm.kind === 'cluster') return false
  return owners.some((owner) => {
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
