// The Lease of a replica: its identity, the address for other replicas, the buckets that it claims, and the owner of
// each bucket by these claims. A deleted Lease has lost all its claims, so a Lease may be deleted only when its holder
// has certainly stopped.
import type { KubeObject, ObjectMeta } from '#apimachinery/meta/index.ts'
import { assignBuckets, bucketCount, type BucketSet, bucketsFromText, bucketsToText } from './assign-buckets.ts'

export const leases = { group: 'coordination.k8s.io', version: 'v1', resource: 'leases' } as const

const labelName = 'kcp.dev/replica-of'
const labelValue = 'kcp-apiserver'
const bucketsAnnotation = 'kcp.dev/buckets'
const addressAnnotation = 'kcp.dev/peer-address'
const processAnnotation = 'kcp.dev/process'

/** Selects the Leases of replicas. */
export const replicaSelector = `${labelName}=${labelValue}`

export interface ReplicaLease extends KubeObject {
  apiVersion: 'coordination.k8s.io/v1'
  kind: 'Lease'
  metadata: ObjectMeta
  spec?: { holderIdentity?: string; leaseDurationSeconds?: number; acquireTime?: string; renewTime?: string }
}

/** One process of `kcp apiserver`, as its Lease shows it. */
export interface Replica {
  /** The name of the Lease. */
  readonly name: string
  /** `HOST:PORT` of the listener for the other replicas. */
  readonly address: string
  /** Identifies the process on its machine; empty if unknown. */
  readonly process: string
  /** Milliseconds after its last change at which the Lease expires; Infinity if it names no duration. */
  readonly leaseMs: number
  /** The buckets that no other replica may serve while this Lease exists. */
  readonly claims: BucketSet
}

/**
 * The Lease to write. `existing` is the Lease that it replaces. The times in it are for people: no process compares
 * them with a clock.
 */
export function leaseOf(
  { name, address, process, leaseMs, claims }: Replica,
  { namespace, now, existing }: { namespace: string; now: number; existing?: ReplicaLease },
): ReplicaLease {
  const time = new Date(now).toISOString().replace(/Z$/, '000Z')
  const annotations = {
    [bucketsAnnotation]: bucketsToText(claims),
    [addressAnnotation]: address,
    [processAnnotation]: process,
  }
  const { uid, resourceVersion } = existing?.metadata ?? {}
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      namespace,
      name,
      labels: { [labelName]: labelValue },
      annotations,
      // With both, an update fails if the Lease was deleted or created again.
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
    },
    spec: {
      holderIdentity: name,
      leaseDurationSeconds: Math.max(1, Math.ceil(leaseMs / 1000)),
      acquireTime: existing?.spec?.acquireTime ?? time,
      renewTime: time,
    },
  }
}

/** The content of a Lease. A claim that cannot be read counts as a claim of everything. */
export function replicaOf({
  metadata,
  spec,
}: {
  readonly metadata: { readonly name?: string; readonly annotations?: Readonly<Record<string, string>> }
  readonly spec?: { readonly leaseDurationSeconds?: number }
}): Replica {
  const annotations = metadata.annotations ?? {}
  return {
    name: metadata.name ?? '',
    address: annotations[addressAnnotation] ?? '',
    process: annotations[processAnnotation] ?? '',
    leaseMs: (spec?.leaseDurationSeconds ?? Infinity) * 1000,
    claims: bucketsFromText(annotations[bucketsAnnotation] ?? ''),
  }
}

/**
 * For each bucket, the other replica that claims it. If two replicas claim a bucket, it moves from one to the other:
 * the result is then the old owner, which serves the bucket until the move is complete.
 */
export function routesOf<R extends Replica>(others: readonly R[], own: string): readonly (R | undefined)[] {
  const routes = new Array<R | undefined>(bucketCount)
  if (others.length === 0) return routes
  const owners = assignBuckets([own, ...others.map(({ name }) => name)])
  for (const replica of others)
    for (const bucket of replica.claims)
      if (routes[bucket] === undefined || owners[bucket] !== replica.name) routes[bucket] = replica
  return routes
}
