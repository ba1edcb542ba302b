export * from './controller.ts'
export * from './key-queue.ts'
export * from './leader-election.ts'
