export * from './line-file.ts'
export * from './log.ts'
export * from './metrics.ts'
export * from './program-version.ts'
