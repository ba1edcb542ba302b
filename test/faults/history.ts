// What clients did and were told, as they saw it. The checker works on this alone.

/** What an object holds, written twice in every write: half of a write would show as two that differ. */
export interface Content {
  readonly data: Readonly<Record<string, string>>
  readonly mirror: Readonly<Record<string, string>>
}

/** An object at one revision, as a server told it. */
export interface Seen {
  readonly cluster: string
  readonly name: string
  readonly uid: string
  readonly revision: number
  readonly content: Content
}

export type Outcome =
  /** Acknowledged. `seen`: the object as answered; `uids`: the objects that a deletion named. */
  | { readonly is: 'done'; readonly seen?: Seen; readonly uids?: readonly string[] }
  /** Refused for certain: nothing of it may ever be seen. */
  | { readonly is: 'refused'; readonly code: number }
  /** No answer: it may have happened or not. */
  | { readonly is: 'unknown' }

export interface Write {
  readonly kind: 'create' | 'update' | 'patch' | 'delete' | 'deletecollection'
  readonly cluster: string
  /** Of a collection: what the names of its objects begin with. */
  readonly name: string
  /** What it writes: unlike any other token of the history. */
  readonly token?: string
  /** Under which key; a create and an update replace all there is, a patch sets this one. */
  readonly key?: string
  /** Compare and swap: the revision it is for. */
  readonly ifRevision?: number
  /** Milliseconds on one clock. `ended` of an unknown outcome: when it can no longer happen. */
  readonly begun: number
  readonly ended: number
  readonly outcome: Outcome
}

/** All objects of a logical cluster, or of all of them. */
export interface ListRead {
  readonly cluster: string
  readonly revision: number
  readonly items: readonly Seen[]
  readonly begun: number
  readonly ended: number
  /** False for a list at a revision that the client named: it may be of the past. */
  readonly latest: boolean
}

export interface GetRead {
  readonly cluster: string
  readonly name: string
  readonly seen: Seen | undefined
  readonly begun: number
  readonly ended: number
}

export type Entry =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly seen: Seen }
  | { readonly type: 'BOOKMARK'; readonly revision: number }

/** One watch request, from its beginning to its end. */
export interface Session {
  /** The resourceVersion it was asked for. */
  readonly since: number
  /**
   * The server was started anew since the last session, and was at this revision then: of what changed in between, the
   * last state of each object may stand for all before it.
   */
  readonly restartedAt?: number
  readonly entries: Entry[]
}

/** A list and the watches that continue it. Another begins when the server says 410. */
export interface Epoch {
  readonly list: ListRead
  readonly sessions: Session[]
}

export interface Watch {
  readonly title: string
  /** A logical cluster, or `*`. */
  readonly cluster: string
  readonly epochs: Epoch[]
}

export interface History {
  readonly writes: readonly Write[]
  readonly lists: readonly ListRead[]
  readonly gets: readonly GetRead[]
  readonly watches: readonly Watch[]
}

/** Whether this write, a deletion, may delete the object of this name. */
export function mayDelete({ kind, name }: Write, object: string): boolean {
  return kind === 'deletecollection' ? object.startsWith(name) : kind === 'delete' && name === object
}

export function isInScope(scope: string, cluster: string): boolean {
  return scope === '*' || scope === cluster
}
