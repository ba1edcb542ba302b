export type { MemberToSync } from './apply.ts'
export { memberClusterController, type MemberClusterDeps } from './controller.ts'
