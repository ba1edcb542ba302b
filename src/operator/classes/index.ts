export { classesController } from './controller.ts'
