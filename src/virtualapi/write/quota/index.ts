export { holdQuota } from './hold-quota.ts'
export { setRemoteLedger, ledgerFor, type Decision, type QuotaCharge } from './ledger.ts'
export { quotaResource } from './quota.ts'
export { outdatedQuotas } from './quota-status.ts'
