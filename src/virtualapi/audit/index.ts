export * from './cluster-audits.ts'
export * from './policy.ts'
export * from './ring.ts'
export * from './webhook.ts'
