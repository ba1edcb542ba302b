export { memberClusterController, memberFinalizer, type MemberClusterDeps, type MemberToSync } from './controller.ts'
