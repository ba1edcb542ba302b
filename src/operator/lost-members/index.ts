export { lostMembersController } from './controller.ts'
