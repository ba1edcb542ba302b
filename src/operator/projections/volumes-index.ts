export { volumesController } from './volumes.ts'
