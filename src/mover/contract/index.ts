export * from './contract.ts'
export * from './identities.ts'
export * from './mover-error.ts'
