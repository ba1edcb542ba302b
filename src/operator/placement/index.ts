export { heldAnnotation, placementController, type PlacementDeps } from './controller.ts'
