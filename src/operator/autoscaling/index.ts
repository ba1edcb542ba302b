export { autoscalingController, type AutoscalingDeps } from './controller.ts'
