export * from './field-error.ts'
export * from './names.ts'
