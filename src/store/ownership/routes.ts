// The destination of requests for each bucket, by the claims of the replicas.
import { assignBuckets, bucketCount } from './assign-buckets.ts'
import type { Replica } from './replica-lease.ts'

/**
 * By bucket, the other replica that claims it. Where two do, it moves from one to the other: then that which will not have
 * it in the end, because it is the one that answers for it now.
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
