export { logicalClusterController } from './controller.ts'
