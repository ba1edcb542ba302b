export { classesController } from './classes.ts'
