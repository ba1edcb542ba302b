export { openHostStore, type HostStoreOptions } from './open-host-store.ts'
