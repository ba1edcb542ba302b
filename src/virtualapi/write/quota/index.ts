export { holdQuota } from './hold-quota.ts'
export { ledgerFor, type Decision, type LedgerFor, type QuotaCharge, type QuotaLedger } from './ledger.ts'
export { quotaResource } from './quota.ts'
export { outdatedQuotas } from './quota-status.ts'
