export { clusterProfilesController } from './cluster-profiles.ts'
