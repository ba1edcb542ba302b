export * from './directory.ts'
export * from './kept-directory.ts'
