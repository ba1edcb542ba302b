export { serviceExportsController } from './controller.ts'
