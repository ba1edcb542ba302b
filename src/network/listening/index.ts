export * from './pending-connections.ts'
