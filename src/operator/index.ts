export { adoptionController } from './adoption/controller.ts'
export { autoscalingController } from './autoscaling/controller.ts'
export { exportedApisController } from './exported-apis/controller.ts'
export { MemberApis } from './exported-apis/member-apis.ts'
export {
  operatorMetrics,
  type ClusterUrls,
  type OperatorContext,
  type OperatorController,
} from './framework/operator-context.ts'
export { ensureCrds } from './install.ts'
export type { MemberToSync } from './member-cluster/apply.ts'
export { memberClusterController, type MemberClusterDeps } from './member-cluster/controller.ts'
export { placementController, type PlacementDeps } from './placement/controller.ts'
export { explainWorkload, type WorkloadExplanation } from './placement/explain-workload.ts'
export { PlacementInputs } from './placement/placement-inputs.ts'
export { previewDrain, type DrainPreview } from './placement/preview-drain.ts'
export { classesController } from './projections/classes.ts'
export { clusterProfilesController } from './projections/cluster-profiles.ts'
export { lostMembersController } from './projections/lost-members.ts'
export { serviceExportsController } from './projections/service-exports.ts'
export { volumesController } from './projections/volumes.ts'
export { openStore, StoreProblem } from './snapshot-stores/open-store.ts'
export { snapshotRetentionController, snapshotSchedulesController } from './snapshots/schedules.ts'
export { snapshotsController } from './snapshots/snapshots.ts'
export { snapshotStoresController } from './snapshots/stores.ts'
export * from './start-operator.ts'
export { volumeMoveController } from './volumes/controller.ts'
export type { MemberAccess } from './volumes/parties.ts'
