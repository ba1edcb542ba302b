// The contract between the API server and the controllers beside it: the objects of all logical clusters, and their
// owners. The server reads them from its memory (src/virtualapi/background/graph); controllers write through the API
// only.
import type { GroupVersionResource, KubeObject, ObjectMeta, OwnerReference } from '#apimachinery/meta/index.ts'

/** Names one object. `cluster` is the id of the logical cluster, not its name: a name can be used again. */
export interface ObjectKey {
  readonly cluster: string
  /** `deployments.apps` or `configmaps`; without a version. */
  readonly resource: string
  /** Empty for a cluster-scoped object. */
  readonly namespace: string
  readonly name: string
}

/** A resource that a logical cluster serves. */
export interface ServedResource {
  readonly resource: string
  readonly gvr: GroupVersionResource
  readonly namespaced: boolean
}

/** An object with its metadata decoded. */
export interface GraphObject extends ServedResource {
  readonly key: ObjectKey
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: ObjectMeta
}

/** The parts of an object that can be read without decoding all of it. */
export interface Candidate {
  readonly labels: Readonly<Record<string, string>>
  /** Whether the JSON of the object contains this text. */
  readonly contains: (text: string) => boolean
}

/** An object that is decoded on demand. */
export interface SelectedObject {
  readonly key: ObjectKey
  /** Differs for every change of the object. */
  readonly revision: number
  readonly labels: Readonly<Record<string, string>>
  /** Size of the object's JSON, in bytes. */
  readonly bytes: number
  readonly object: () => KubeObject
}

/**
 * An object that was deleted. Its uid may belong to a second object: copies from members keep the uid that a member
 * chose.
 */
export interface DeletedObject extends ObjectKey {
  readonly kind: string
  readonly uid: string
}

/** Called while changes are applied: must return quickly and must not throw. */
export interface GraphObserver {
  /** An object was loaded, or its owners, finalizers or deletionTimestamp changed. */
  onChanged(key: ObjectKey): void
  /** An object was deleted. */
  onDeleted(object: DeletedObject): void
  /** An object was deleted, or no longer names these owners: an owner may have waited for that. */
  onOwnersRemoved(cluster: string, namespace: string, owners: readonly OwnerReference[]): void
}

/**
 * Questions about the objects of all logical clusters. Each method loads the logical cluster if it is not in memory.
 */
export interface ObjectGraph {
  /** Calls the observer for everything in memory, then for every change. Returns the function that ends it. */
  observe(observer: GraphObserver): () => void
  /** The current name of the logical cluster with this id; undefined after its deletion. */
  nameOf(cluster: string): string | undefined
  get(key: ObjectKey, signal: AbortSignal): Promise<GraphObject | undefined>
  /** The object of this key as every logical cluster is created with it; undefined if there is none. */
  initial(key: ObjectKey): KubeObject | undefined
  /** All objects that name this uid as an owner. */
  dependents(cluster: string, uid: string, signal: AbortSignal): Promise<readonly ObjectKey[]>
  /**
   * Whether a dependent with blockOwnerDeletion is left in a place where this owner may own it: a namespaced owner owns
   * objects of its own namespace only. The cost does not depend on the number of dependents.
   */
  isBlocked(owner: ObjectKey, uid: string, signal: AbortSignal): Promise<boolean>
  /**
   * The resource of a kind; undefined if the logical cluster does not serve it in this version. Also knows `configmap`,
   * as client-go's RESTMapper does: owner references with such kinds count in every cluster.
   */
  resourceOf(
    cluster: string,
    kind: { apiVersion: string; kind: string },
    signal: AbortSignal,
  ): Promise<ServedResource | undefined>
  /** The objects of a resource for which `isWanted` is true, by name. Looks at them in slices; decodes none. */
  select(
    cluster: string,
    resource: string,
    isWanted: (candidate: Candidate) => boolean,
    signal: AbortSignal,
  ): Promise<readonly SelectedObject[]>
  /** The ResourceQuotas of a namespace whose status is not up to date, with the status that they should have. */
  outdatedQuotas(cluster: string, namespace: string, signal: AbortSignal): Promise<readonly KubeObject[]>
  /** The namespace of the object with this uid; undefined if the resource has no such object. Looks at all of them. */
  namespaceOf(cluster: string, resource: string, uid: string, signal: AbortSignal): Promise<string | undefined>
}

/** One change of one object. */
export interface ObjectChange {
  readonly key: ObjectKey
  /** False after a deletion: `object` is then the last state, or undefined if that is unknown. */
  readonly exists: boolean
  /** The object was created, or this is the first time it is loaded since the process started. */
  readonly isNew: boolean
  /** The object has a deletionTimestamp. */
  readonly deleting: boolean
  /** Labels of the object; undefined if it has none or is unknown. */
  readonly labels: Readonly<Record<string, string>> | undefined
  /** Whether the JSON of the object contains this text. Cheaper than `object`. */
  readonly contains: (text: string) => boolean
  readonly object: () => KubeObject | undefined
}

export type ChangeListener = (change: ObjectChange) => void

/** Changes of objects in all logical clusters, without a copy of the objects. */
export interface ObjectFeed {
  /**
   * Calls the listener for every change of a resource (`deployments.apps`, `configmaps`). Objects that were written
   * before this process started are reported when their logical cluster is loaded for the first time. Objects that
   * every logical cluster is created with are not reported while unchanged; their deletion is. The listener must return
   * quickly and must not throw. Returns the function that ends it.
   */
  follow(resource: string, listener: ChangeListener): () => void
  /**
   * Calls the listener for every change in a namespace with ResourceQuotas, and of the last of them; for each such
   * namespace also when its logical cluster is loaded for the first time. Returns the function that ends it.
   */
  followQuotas(listener: (namespace: { readonly cluster: string; readonly namespace: string }) => void): () => void
  /**
   * Loads each logical cluster once in which work may be unfinished, so that listeners get its objects, and unloads it
   * again. Clusters with namespaces or definitions that are being deleted come first. Deliberately slow: requests have
   * priority.
   */
  loadUnfinished(signal: AbortSignal): Promise<void>
}
