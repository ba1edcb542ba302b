export * from './json-patch.ts'
export * from './merge-patch.ts'
export { goKind } from './patch-error.ts'
export * from './strategic-merge-patch.ts'
