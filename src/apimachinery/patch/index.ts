export * from './json-equal.ts'
export * from './json-patch.ts'
export * from './merge-patch.ts'
export * from './strategic-merge-patch.ts'
