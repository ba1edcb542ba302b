// What garbage collection reads of all logical clusters: who owns whom, from the memory of the server beside it. Writing goes
// through the API, as for everybody. The program that starts both wires one to the other.
import type { GroupVersionResource, KubeObject, ObjectMeta, OwnerReference } from '../../apimachinery/meta/index.ts'

/** Where an object is. `cluster` is the logical cluster's id: a name may come again. */
export interface ObjectPlace {
  readonly cluster: string
  /** `deployments.apps`, `configmaps`: whatever its version. */
  readonly resource: string
  /** Empty: cluster-scoped. */
  readonly namespace: string
  readonly name: string
}

/** A resource that a logical cluster serves. */
export interface ServedResource {
  readonly resource: string
  readonly gvr: GroupVersionResource
  readonly namespaced: boolean
}

export interface GraphObject extends ServedResource {
  readonly place: ObjectPlace
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: ObjectMeta
}

/** What is known of an object without decoding it. */
export interface Candidate {
  readonly labels: Readonly<Record<string, string>>
  /** Whether its JSON has this text in it. */
  readonly contains: (text: string) => boolean
}

/** Told while changes are applied: must be quick, and not throw. */
export interface GraphObserver {
  /** An object came into memory or changed in what matters here: owners, finalizers, deletion. */
  touched(place: ObjectPlace): void
  /** An object is gone for good; its uid never comes again. */
  gone(cluster: string, uid: string): void
  /** An object is gone, or does not name these as owners any more: they may have waited for that. */
  released(cluster: string, namespace: string, owners: readonly OwnerReference[]): void
}

export interface ObjectGraph {
  /** From now on, and for all that is in memory already. Returns the way to stop. */
  observe(observer: GraphObserver): () => void
  /** The name by which a logical cluster is reached now; undefined where it is no more. */
  nameOf(cluster: string): string | undefined
  get(place: ObjectPlace, signal: AbortSignal): Promise<GraphObject | undefined>
  /** Whatever names this uid as an owner. */
  dependents(cluster: string, uid: string, signal: AbortSignal): Promise<readonly ObjectPlace[]>
  /**
   * Whether anything that has the uid as an owner, and may have it (one in a namespace owns nothing elsewhere), is to be deleted
   * before it. Costs no more where there are many.
   */
  isBlocked(owner: ObjectPlace, uid: string, signal: AbortSignal): Promise<boolean>
  /** The resource of a kind, undefined where the logical cluster serves none. */
  resourceOf(
    cluster: string,
    kind: { apiVersion: string; kind: string },
    signal: AbortSignal,
  ): Promise<ServedResource | undefined>
  /** Those objects of a resource that are wanted, decoded; the others cost no more than what is asked of them. */
  select(
    cluster: string,
    resource: string,
    isWanted: (candidate: Candidate) => boolean,
    signal: AbortSignal,
  ): Promise<readonly KubeObject[]>
  /** The namespace in which an object of this resource has the uid; undefined where none has. */
  namespaceOf(cluster: string, resource: string, uid: string, signal: AbortSignal): Promise<string | undefined>
}
