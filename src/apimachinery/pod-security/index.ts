export * from './level.ts'
export * from './pod-to-check.ts'
export * from './evaluate-pod.ts'
