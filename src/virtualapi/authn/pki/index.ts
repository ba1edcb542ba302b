export * from './certificate-authority.ts'
export * from './kept-pki.ts'
export * from './pki.ts'
export * from './realm-uri.ts'
