export * from './network-of.ts'
export * from './pending-connections.ts'
