export { clusterProfilesController } from './controller.ts'
