// What every controller of this folder gets from the process that starts it.
import type { KubeClient } from '#client/index.ts'
import type { ObjectFeed, ObjectGraph } from '#reconcile/object-graph/index.ts'
import type { Logger } from '#telemetry/index.ts'

/** Signs a PKCS #10 request (PEM) for use in one logical cluster alone, and resolves with the certificate, PEM. */
export type SignClientRequest = (request: {
  readonly request: string
  readonly clusterId: string
  readonly seconds: number
}) => Promise<string>

export interface ControllersOptions {
  /** The API of one logical cluster, by name. */
  readonly cluster: (name: string) => KubeClient
  /** The content of `kube-root-ca.crt` in every namespace. PEM. */
  readonly rootCa: string
  readonly signClientRequest: SignClientRequest
  /** The objects of all logical clusters and their changes. */
  readonly graph: ObjectGraph & ObjectFeed
  readonly log: Logger
  readonly signal: AbortSignal
}

export interface ControllerContext extends ControllersOptions {
  /** The API of the logical cluster with this id; undefined after its deletion. */
  readonly clientOf: (clusterId: string) => KubeClient | undefined
}
