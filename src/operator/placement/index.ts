export { placementController, type PlacementDeps } from './controller.ts'
