// Our CustomResourceDefinitions: `kcp operator` installs them in a host; our own server serves them in `root`.
import { adoptionKind } from './adoption.ts'
import { crdOf, type CustomResourceDefinition } from './crd.ts'
import { logicalClusterKind } from './logical-cluster.ts'
import { logicalClusterSnapshotKind } from './logical-cluster-snapshot.ts'
import { memberClusterKind } from './member-cluster.ts'
import { placementKind } from './placement.ts'
import { recordKind } from './record.ts'
import { snapshotScheduleKind } from './snapshot-schedule.ts'
import { snapshotStoreKind } from './snapshot-store.ts'
import { volumeMoveKind } from './volume-move.ts'

/** All kinds of ours that admins read and write. New objects with each call. */
export function kcpCrds(): CustomResourceDefinition[] {
  return [
    logicalClusterKind,
    memberClusterKind,
    placementKind,
    adoptionKind,
    volumeMoveKind,
    snapshotStoreKind,
    logicalClusterSnapshotKind,
    snapshotScheduleKind,
  ].map(crdOf)
}

/** Record: only for a host whose etcd stores the objects of logical clusters. */
export function storageCrds(): CustomResourceDefinition[] {
  return [crdOf(recordKind)]
}
