// The address of a Service of a logical cluster.
import type { ClusterId } from '#apimachinery/meta/index.ts'
import type { Tunnel } from '#network/egress/index.ts'

/** `service` of a clientConfig. */
export interface ServiceReference {
  readonly namespace: string
  readonly name: string
  readonly port: number
  readonly path: string
}

/** The place to connect to: an address, which egress checks, or a pod of the logical cluster, through its member. */
export type Resolved =
  { readonly dial: { readonly address: string; readonly port: number } } | { readonly tunnel: Tunnel }

/** Finds an endpoint of a Service in a logical cluster. Rejects with EgressError. */
export type ServiceResolver = (
  cluster: ClusterId,
  service: Omit<ServiceReference, 'path'>,
  signal: AbortSignal,
) => Promise<Resolved>
