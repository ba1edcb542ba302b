export { copyStore, type Copied } from './copy-store.ts'
export { objectCharge, StorageBudget, storageUsed, type QuotaAccount } from './quota-account.ts'
export { Seal } from './seal.ts'
export * from './store.ts'
