// The interface of the allocator of cluster IPs and node ports for Services.
import type { ClusterObjects } from '#store/watch-cache/index.ts'

/** The allocator for one Service in one request. */
export interface Allocation {
  /** Allocates a free address; undefined if the range is full. */
  nextIp(): string | undefined
  nextPort(): number | undefined
  /** Allocates this address. Returns the reason if that is not possible; undefined on success. */
  takeIp(ip: string): string | undefined
  takePort(port: number): string | undefined
}

/** The Service that allocates. */
export interface AllocationRequest {
  /** namespace/name of the Service. */
  readonly by: string
  /** Milliseconds since the epoch. */
  readonly now: number
  /** True: reserve nothing. */
  readonly dryRun: boolean
}

/** The allocator of a logical cluster, for one of its Services. */
export type AllocationFor = (objects: ClusterObjects, request: AllocationRequest) => Allocation
