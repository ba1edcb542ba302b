export * from './event-expiry.ts'
