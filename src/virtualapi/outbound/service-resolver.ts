// What a Service of a logical cluster is resolved to.
import type { ClusterId } from '../../apimachinery/meta/index.ts'

/** `service` of a clientConfig. */
export interface ServiceReference {
  readonly namespace: string
  readonly name: string
  readonly port: number
  readonly path: string
}

/** Where to connect; egress judges the address. */
export interface Resolved {
  readonly dial: { readonly address: string; readonly port: number }
}

/** Finds an endpoint of a Service in a logical cluster. Rejects with EgressError. */
export type ServiceResolver = (
  cluster: ClusterId,
  service: Omit<ServiceReference, 'path'>,
  signal: AbortSignal,
) => Promise<Resolved>
