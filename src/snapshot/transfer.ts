// The protocol by which a logical cluster goes from one installation to another: the paths of its API, the messages,
// and the lines with its objects. Both servers and `kcp transfer` use it.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { ObjectPlace } from './format.ts'

/** GET: TransferState. POST: a TransferStep; the answer is TransferState. */
export const transferPath = '/transfer'
/** GET with `since=REVISION`: TransferLine per line, as NDJSON. */
export const transferObjectsPath = '/transfer/objects'
/** GET: TransferDigests. */
export const transferDigestsPath = '/transfer/digests'

/** True for a path of the protocol. */
export function isTransferPath(path: string): boolean {
  return path === transferPath || path.startsWith(`${transferPath}/`)
}

/** The Secret, in the namespace of the installation, with the way to the new place of a logical cluster. */
export function transferSecretName(cluster: string): string {
  return `transfer-${cluster}`
}

/** The content of that Secret, base64 in its data. */
export interface TransferSecret {
  /** The id of the move. */
  readonly id: string
  /** What opens the target. */
  readonly key: string
  /** The URL of the logical cluster at the target: `https://HOST:PORT/clusters/NAME`. */
  readonly server: string
  /** PEM. */
  readonly ca: string
  /** A client certificate of an admin of the logical cluster at the target, PEM; absent: requests are not passed on. */
  readonly cert?: string
  readonly certKey?: string
}

export type TransferStep =
  /** At the target: objects of this move may be put. `above`: revisions continue above this one, if the store can. */
  | { readonly do: 'receive'; readonly id: string; readonly run: string; readonly above: number }
  /** At the source: refuse writes, for so many seconds at most. */
  | { readonly do: 'close'; readonly id: string; readonly run: string; readonly seconds: number }
  /** At the source: take writes again. `run`: only if this run has closed it; absent: the LogicalCluster is not to move. */
  | { readonly do: 'reopen'; readonly id: string; readonly run?: string }
  /** At the source, if this run has closed it: it never takes writes again; it opens the target. */
  | { readonly do: 'commit'; readonly id: string; readonly run: string }
  /** At the target: let its users in. */
  | { readonly do: 'open'; readonly id: string; readonly key: string; readonly above: number }

export type TransferPhase =
  /** Nothing of a move is known. */
  | 'None'
  /** The source takes no writes, for a while. */
  | 'Closed'
  /** The source never takes writes again, and passes requests on. */
  | 'Moved'
  /** Objects arrive at the target. */
  | 'Receiving'
  /** The target serves. */
  | 'Open'

export interface TransferState {
  readonly phase: TransferPhase
  /** The id of the move; absent in phase None. */
  readonly id?: string
  /** The newest revision of the logical cluster. */
  readonly revision: number
  /** The answer to a commit: the target has said that it is open. */
  readonly opened?: boolean
}

/**
 * The lines of an answer with objects, in this order. All are as they were at `revision`: every object that was changed
 * after `since`, then the names of all objects.
 */
export type TransferLine =
  | {
      readonly revision: number
      /** Objects with which every logical cluster begins and that were deleted. */
      readonly deleted: readonly ObjectPlace[]
    }
  | { readonly resource: string; readonly object: KubeObject }
  | { readonly resource: string; readonly namespace: string; readonly names: readonly string[] }
  /** The last line: the number of all objects, and those that would lose something on the way, some of them by name. */
  | {
      readonly objects: number
      readonly held: { readonly count: number; readonly some: readonly (ObjectPlace & { readonly why: string })[] }
    }

/** Of each resource: how many objects it has, and the XOR of their SHA-256. */
export interface TransferDigests {
  readonly revision: number
  readonly resources: Readonly<Record<string, { readonly objects: number; readonly sha256: string }>>
}
