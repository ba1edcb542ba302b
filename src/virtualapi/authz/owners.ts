// spec.owners of a LogicalCluster: subjects of the host that are cluster-admin inside.
import { hostName } from '../authn/host-names.ts'
import type { UserInfo } from '../authn/user-info.ts'
import type { OwnerSubject } from '../clusters/directory.ts'

/** Is this user one of the owners? Only identities of the host or the installation can be: `alice` inside is somebody else. */
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
