export { StorageBudget, storageUsed } from './quota-account.ts'
export * from './store.ts'
