export * from './certificate-authority.ts'
