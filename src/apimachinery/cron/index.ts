export { nextTime } from './schedule.ts'
export { lastTimeIn, nextTimeIn, type ZonedSchedule } from './zoned.ts'
