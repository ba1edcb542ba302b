export * from './go-text.ts'
