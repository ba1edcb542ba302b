export { autoscalingController } from './autoscaling/index.ts'
export { classesController } from './projections/classes-index.ts'
export { clusterProfilesController } from './projections/cluster-profiles-index.ts'
export { ensureCrds } from './install.ts'
export { memberClusterController, type MemberClusterDeps, type MemberToSync } from './member-cluster/index.ts'
export {
  explainWorkload,
  placementController,
  PlacementInputs,
  previewDrain,
  type DrainPreview,
  type PlacementDeps,
  type WorkloadExplanation,
} from './placement/index.ts'
export { type ClusterUrls, type OperatorContext, type OperatorController } from './framework/operator-context.ts'
export { operatorMetrics } from './framework/operator-metrics.ts'
export * from './start-operator.ts'
export { lostMembersController } from './projections/lost-members-index.ts'
export { serviceExportsController } from './projections/service-exports-index.ts'
export { volumesController } from './projections/volumes-index.ts'
