// The logical clusters that this process owns, where several processes share them. A process without this owns all.
import type { ClusterId } from '#apimachinery/meta/index.ts'

/** A request's permission to answer for a logical cluster. */
export interface Tenure {
  /** Whether this process has owned the logical cluster since the request entered. Ask before every answer. */
  isValid(): boolean
  /** The request was answered. Call it once. */
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
  /** Called before the first request for them is let in. */
  readonly gained: (isGained: ClusterFilter) => void
  /** Called after the last request for them, or at once when the process was too slow to keep them. */
  readonly lost: (isLost: ClusterFilter) => void
}

export interface ClusterOwnership {
  /** Lets a request in. Undefined: this process may not answer for the logical cluster now. */
  enter(id: ClusterId): Tenure | undefined
  owns(id: ClusterId): boolean
  /** Whether this process may answer for anything now. If not, others may own all that it had. */
  readonly isLive: boolean
  /** The process to ask instead of this one; undefined while it is not known. */
  ownerOf(id: ClusterId): Peer | undefined
  /** Returns the function that ends it. */
  follow(listener: OwnershipListener): () => void
}
