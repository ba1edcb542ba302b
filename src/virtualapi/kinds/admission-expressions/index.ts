export * from './admission-types.ts'
export * from './compile-admission-expression.ts'
