export * from './certificate-chain.ts'
export * from './signing-request.ts'
