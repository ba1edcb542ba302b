export { StorageBudget, storageUsed } from './storage-budget.ts'
export * from './store.ts'
