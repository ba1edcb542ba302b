// What every controller of this folder gets from the process that starts it.
import type { KubeClient } from '../../client/index.ts'
import type { ObjectFeed, ObjectGraph } from '../../object-graph/index.ts'
import type { Logger } from '../../telemetry/index.ts'

export interface ControllersOptions {
  /** The API of one logical cluster, by name. */
  readonly cluster: (name: string) => KubeClient
  /** The content of `kube-root-ca.crt` in every namespace. PEM. */
  readonly rootCa: string
  /** The objects of all logical clusters and their changes. */
  readonly graph: ObjectGraph & ObjectFeed
  readonly log: Logger
  readonly signal: AbortSignal
}

export interface ControllerContext extends ControllersOptions {
  /** The API of the logical cluster with this id; undefined after its deletion. */
  readonly clientOf: (clusterId: string) => KubeClient | undefined
}
