export { serviceExportsController } from './service-exports.ts'
