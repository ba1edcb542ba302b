export * from './cells/human-duration.ts'
export * from './table-columns.ts'
export * from './table-row.ts'
