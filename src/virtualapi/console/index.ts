export { Console, type ConsoleOptions } from './console.ts'
export { Sessions, ticketMs, type SessionIdentity } from './session.ts'
export type { Asking, HostUsers } from './session-users.ts'
export { EndedRecord } from './ended-record.ts'
