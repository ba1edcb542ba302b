export * from './status-error.ts'
export * from './tolerate.ts'
