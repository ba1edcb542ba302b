export type { EtcdEndpoints } from './etcd-client.ts'
export { openEtcdStore, type EtcdStoreOptions } from './open-etcd-store.ts'
