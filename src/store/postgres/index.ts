export { openPostgresStore, type PostgresStoreOptions } from './open-postgres-store.ts'
export type { PostgresServers } from './servers.ts'
