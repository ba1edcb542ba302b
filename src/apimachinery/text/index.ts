export * from './go-text.ts'
export * from './go-url.ts'
export * from './ip-address.ts'
