export { assignBuckets, bucketCount } from './assign-buckets.ts'
export { BucketOwnership } from './bucket-ownership.ts'
export { leases, replicaOf, replicaSelector, type Replica, type ReplicaLease } from './replica-lease.ts'
