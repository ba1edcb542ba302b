export * from './admission-types.ts'
export * from './checked-type.ts'
export * from './compile-admission-expression.ts'
export * from './type-check.ts'
