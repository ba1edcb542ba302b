export { memberClusterController, type MemberClusterDeps, type MemberToSync } from './controller.ts'
