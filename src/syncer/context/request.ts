// The keys of the syncer's queue: what a reconcile is about.
import { clusterInKey, keyFor, parseKey } from '#client/index.ts'
import type { ResourceName } from './resources.ts'

/** What a reconcile is about. Names in a key are upstream names unless it says otherwise. */
export type RequestKind =
  /** An object that is copied into members; but a pod is reconciled as `pod`. */
  | ResourceName
  /** An object that a member made, other than those below. */
  | `made:${ResourceName}`
  /** The namespace in the member. */
  | 'namespace'
  /** A namespace of a deleted logical cluster; `cluster` is the id and `name` the name in the member. */
  | 'leftover'
  /** The ReplicaSets of a workload. */
  | 'history'
  /** A node of the member, as a logical cluster shows it. */
  | 'node'
  /** A pod, whoever made it; its name is the same on both sides. */
  | 'pod'
  /** An Event of the member, by its name there. */
  | 'event'
  /** An EndpointSlice that this member created, by its name in the member. */
  | 'slice'
  /** An EndpointSlice of another member, by its upstream name. */
  | 'remoteSlice'

export interface ReconcileRequest {
  readonly kind: RequestKind
  readonly cluster: string
  readonly namespace: string
  readonly name: string
}

export function requestKey({ kind, cluster, namespace, name }: ReconcileRequest): string {
  return `${kind} ${keyFor({ cluster, namespace, name })}`
}

/** The logical cluster of a key, by which the queue is fair. */
export function clusterOfRequest(key: string): string {
  return clusterInKey(key.slice(key.indexOf(' ') + 1))
}

/** Endpoints go first: until they are known elsewhere, requests go to pods that have ended. */
export function isUrgentRequest(key: string): boolean {
  return key.startsWith('slice ') || key.startsWith('remoteSlice ')
}

export function parseRequest(key: string): ReconcileRequest {
  const blank = key.indexOf(' ')
  const { cluster = '', namespace = '', name } = parseKey(key.slice(blank + 1))
  return { kind: key.slice(0, blank) as RequestKind, cluster, namespace, name }
}

/** The reconcile in which an object of this resource is copied into the member. */
export function requestKindOf(resource: ResourceName): RequestKind {
  return resource === 'pods' ? 'pod' : resource
}
