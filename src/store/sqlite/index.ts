export { openSqliteStore, type SqliteStoreOptions } from './sqlite-store.ts'
export { readOrCreateSeal } from './sealed-values.ts'
