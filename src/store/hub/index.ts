export * from './hub.ts'
export * from './create-hub.ts'
export * from './stored-entry.ts'
export { isTombstone } from './tombstone.ts'
