export * from './hub.ts'
export * from './create-hub.ts'
