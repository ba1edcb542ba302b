export { placementController, type PlacementDeps } from './controller.ts'
export { explainWorkload, type WorkloadExplanation } from './explain-workload.ts'
export { PlacementInputs } from './placement-inputs.ts'
export { previewDrain, type DrainPreview } from './preview-drain.ts'
