export { bucketNumberOf } from './record-codec.ts'
export { resealRecords } from './reseal-records.ts'
export { openHostStore, type HostStoreOptions, type SharedStore } from './open-host-store.ts'
