export * from './choose.ts'
export * from './move.ts'
export * from './target.ts'
