export { lostMembersController } from './lost-members.ts'
