export * from './json-patch.ts'
export * from './merge-patch.ts'
export { FailedTest, goKind } from './patch-error.ts'
export * from './strategic-merge-patch.ts'
