// What every controller of the operator gets.
import type { KubeClient } from '../client/index.ts'
import type { Logger } from '../telemetry/index.ts'
import type { SharedInformers } from './informers.ts'

export interface ClusterUrls {
  /** The `server` of a kubeconfig for the logical cluster. */
  readonly url: string
  /** The same without the host in between, where there is such a way in. */
  readonly directURL?: string
}

export interface OperatorContext {
  /** Where LogicalClusters, MemberClusters and Placements live: the host, or logical cluster `root`. */
  readonly clusters: KubeClient
  /** A client of the virtual API server below a path: `/clusters/*`, `/clusters/NAME`. */
  readonly virtual: (basePath: string) => KubeClient
  /** Where a logical cluster of this name is served. */
  readonly urls: (name: string) => ClusterUrls
  /** Of `clusters`. */
  readonly informers: SharedInformers
  readonly log: Logger
}

/** One loop of the operator. */
export interface OperatorController {
  readonly name: string
  /** Runs until the signal aborts; resolves when everything it began has ended. `started` is called once it works. */
  run(context: OperatorContext, life: { readonly signal: AbortSignal; readonly started: () => void }): Promise<void>
}
