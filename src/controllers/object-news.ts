// How the loops hear of objects in all logical clusters: from the memory of the server beside them, and without a copy of
// their own. Nothing is kept per object or per logical cluster. The program that starts both wires one to the other.
import type { KubeObject } from '../apimachinery/meta/index.ts'
import type { ObjectPlace } from './garbage/object-graph.ts'

/** What is told of one object. */
export interface ObjectNews {
  readonly place: ObjectPlace
  /** False: it is gone, `object` is its last state, where it is known. */
  readonly exists: boolean
  /** It was not there before, or nobody looked at it since this process began. */
  readonly isNew: boolean
  /** It has a deletionTimestamp. */
  readonly deleting: boolean
  /** Whether its JSON has this text in it; costs less than `object`. */
  readonly contains: (text: string) => boolean
  readonly object: () => KubeObject | undefined
}

export interface NewsSource {
  /**
   * Told of every change of objects of this resource (`deployments.apps`, `configmaps`), and of all that were written
   * before this process began when their logical cluster comes into memory for the first time. Not of what a logical
   * cluster is born with, while it is as it was; but of it as gone, where it was deleted. Must be quick, and not throw.
   */
  follow(resource: string, listener: (news: ObjectNews) => void): () => void
  /**
   * Takes a first look at every logical cluster in which something may be unfinished: it leaves memory again at once.
   * Slowly, so that requests hardly notice; those with namespaces or definitions that are being deleted go first.
   */
  lookAtAll(signal: AbortSignal): Promise<void>
}
