export * from './hub.ts'
