export { UserActivity } from './user-activity.ts'
