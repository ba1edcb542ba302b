// Our CustomResourceDefinitions: `kcp operator` installs them in a host; our own server serves them in `root`.
import { adoptionKind } from './adoption.ts'
import { crdOf, type CustomResourceDefinition } from './crd.ts'
import { logicalClusterKind } from './logical-cluster.ts'
import { memberClusterKind } from './member-cluster.ts'
import { placementKind } from './placement.ts'
import { recordKind } from './record.ts'
import { volumeMoveKind } from './volume-move.ts'

/** LogicalCluster, MemberCluster, Placement, Adoption, VolumeMove. New objects with each call. */
export function kcpCrds(): CustomResourceDefinition[] {
  return [logicalClusterKind, memberClusterKind, placementKind, adoptionKind, volumeMoveKind].map(crdOf)
}

/** Record: only for a host whose etcd stores the objects of logical clusters. */
export function storageCrds(): CustomResourceDefinition[] {
  return [crdOf(recordKind)]
}
