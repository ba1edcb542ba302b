// The feed of changes in all logical clusters for controllers: the server in the same process calls them as it applies
// each change. Nothing is stored per object or per logical cluster.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { ObjectKey } from './object-graph.ts'

/** One change of one object. */
export interface ObjectChange {
  readonly key: ObjectKey
  /** False after a deletion: `object` is then the last state, or undefined if that is unknown. */
  readonly exists: boolean
  /** The object was created, or this is the first time it is loaded since the process started. */
  readonly isNew: boolean
  /** The object has a deletionTimestamp. */
  readonly deleting: boolean
  /** Of the object; undefined where it has none or is unknown. */
  readonly labels: Readonly<Record<string, string>> | undefined
  /** Whether the JSON of the object contains this text. Cheaper than `object`. */
  readonly contains: (text: string) => boolean
  readonly object: () => KubeObject | undefined
}

export type ChangeListener = (change: ObjectChange) => void

/** Changes of objects in all logical clusters, without a copy of the objects. */
export interface ObjectFeed {
  /**
   * Calls the listener for every change of a resource (`deployments.apps`, `configmaps`). Objects that were written before
   * this process started are reported when their logical cluster is loaded for the first time. Objects that every
   * logical cluster is created with are not reported while unchanged; their deletion is. The listener must return
   * quickly and must not throw. Returns the function that ends it.
   */
  follow(resource: string, listener: ChangeListener): () => void
  /**
   * Calls the listener for every change in a namespace with ResourceQuotas, and of the last of them; for each such namespace
   * also when its logical cluster is loaded for the first time. Returns the function that ends it.
   */
  followQuotas(listener: (namespace: { readonly cluster: string; readonly namespace: string }) => void): () => void
  /**
   * Loads each logical cluster once in which work may be unfinished, so that listeners hear of it, and unloads it again.
   * Clusters with namespaces or definitions that are being deleted come first. Slow on purpose: requests go first.
   */
  loadUnfinished(signal: AbortSignal): Promise<void>
}
