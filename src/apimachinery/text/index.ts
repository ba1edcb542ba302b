export * from './go-text.ts'
export * from './quantity-error.ts'
