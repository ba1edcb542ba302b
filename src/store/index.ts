export { objectCharge, StorageBudget, storageUsed, type QuotaAccount } from './quota-account.ts'
export * from './store.ts'
