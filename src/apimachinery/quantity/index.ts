export * from './amounts.ts'
export * from './pod-total.ts'
export * from './quantity.ts'
export * from './suffixes.ts'
