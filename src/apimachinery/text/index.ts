export * from './go-text.ts'
export * from './go-url.ts'
