export * from './batch-queue.ts'
export * from './child-signal.ts'
export * from './clock.ts'
export * from './sleep.ts'
