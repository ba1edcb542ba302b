export { volumesController } from './controller.ts'
