export * from './directory.ts'
export * from './informed-directory.ts'
export * from './ownership.ts'
