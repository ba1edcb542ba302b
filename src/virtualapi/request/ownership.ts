// The logical clusters that this process owns, where several processes share them. A process without a ClusterOwnership
// owns all of them.
import type { ClusterId } from '#apimachinery/meta/index.ts'

/** A request's permission to answer for a logical cluster. */
export interface Tenure {
  /** Whether this process has owned the logical cluster ever since the request entered. Ask before every answer. */
  isValid(): boolean
  /** Ends the permission, after the request was answered. Call it once. */
  leave(): void
}

/** Another process that serves the same logical clusters. */
export interface Peer {
  /** Names the process; its certificate is for this name. */
  readonly name: string
  /** `HOST:PORT` of its listener for other processes. */
  readonly address: string
}

/** Selects logical clusters by id. */
export type ClusterFilter = (id: ClusterId) => boolean

/** Callbacks must return at once and must not throw. */
export interface OwnershipListener {
  /** Called before the first request for the gained logical clusters is let in. */
  readonly gained: (isGained: ClusterFilter) => void
  /**
   * Called after the last request for the lost logical clusters, or at once if the process was too slow to keep them.
   */
  readonly lost: (isLost: ClusterFilter) => void
}

export interface ClusterOwnership {
  /** Lets a request in. Undefined: this process may not answer for the logical cluster now. */
  enter(id: ClusterId): Tenure | undefined
  owns(id: ClusterId): boolean
  /** Whether this process may answer for any logical cluster now. If not, others may own all that it had. */
  readonly isLive: boolean
  /** The process that owns the logical cluster instead of this one; undefined while it is not known. */
  ownerOf(id: ClusterId): Peer | undefined
  /** Calls the listener from now on. Returns the function that unsubscribes. */
  follow(listener: OwnershipListener): () => void
}
