export * from './field-error.ts'
export * from './go-text.ts'
export * from './names.ts'
