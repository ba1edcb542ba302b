export * from './directory.ts'
export * from './informed-directory.ts'
