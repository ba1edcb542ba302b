// The verbs of the Kubernetes API over a Transport. Objects pass through untouched: fields we do not know are kept.
import type { GroupVersionResource, KubeList, KubeObject, Int64 } from '#apimachinery/meta/index.ts'

export interface Waiting {
  readonly signal: AbortSignal
}
export interface ObjectRef {
  readonly namespace?: string
  readonly name: string
}
export interface ListOptions extends Waiting {
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
  /** A part of the collection, by ranges of hashes (KEP-5866). Servers that do not know it send all objects. */
  readonly shardSelector?: string
  readonly resourceVersion?: string
  /** Absent: all pages are read and joined. */
  readonly limit?: number
  /** The next page of a list that had a limit. */
  readonly continue?: string
  /** Asks for apiVersion, kind and metadata only (PartialObjectMetadata). */
  readonly metadataOnly?: boolean
  /**
   * Over `/clusters/*`: omits the objects that every logical cluster has from the beginning and that nobody has
   * written.
   */
  readonly storedOnly?: boolean
  /**
   * Returns the part of an object to keep; called for each object as soon as its page is read, so that a large list is
   * never whole in memory. May change its argument.
   */
  readonly keep?: (object: KubeObject) => KubeObject
}
export interface WatchOptions extends Waiting {
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
  /** A part of the collection, by ranges of hashes (KEP-5866). Servers that do not know it send all objects. */
  readonly shardSelector?: string
  readonly resourceVersion?: string
  readonly sendInitialEvents?: boolean
  /** The server ends the watch after this time. Default: the server decides. */
  readonly timeoutSeconds?: number
  readonly metadataOnly?: boolean
}
export type WatchEvent<T extends KubeObject> =
  { type: 'ADDED' | 'MODIFIED' | 'DELETED'; object: T } | { type: 'BOOKMARK'; object: T }

export type PatchType = 'json' | 'merge' | 'strategic' | 'apply'

export interface WriteOptions extends Waiting {
  readonly subresource?: string
  readonly dryRun?: boolean
  readonly fieldManager?: string
  /** Only for `apply`: takes over fields of other managers. */
  readonly force?: boolean
  /** Additional headers. Lower-case names. */
  readonly headers?: Readonly<Record<string, string>>
}
export interface DeleteOptions extends Waiting {
  readonly uid?: string
  readonly resourceVersion?: string
  readonly propagationPolicy?: 'Background' | 'Foreground' | 'Orphan'
  readonly gracePeriodSeconds?: Int64
}

/**
 * One API: a host, a member, or a logical cluster. Every method rejects with the server's StatusError, with
 * ServiceUnavailable if there was no response, and with signal.reason when aborted.
 */
export interface KubeClient {
  get<T extends KubeObject>(
    gvr: GroupVersionResource,
    ref: ObjectRef,
    options: Waiting & { subresource?: string },
  ): Promise<T>
  /** Like `get`, but resolves with undefined for NotFound. */
  tryGet<T extends KubeObject>(gvr: GroupVersionResource, ref: ObjectRef, options: Waiting): Promise<T | undefined>
  list<T extends KubeObject>(gvr: GroupVersionResource, options: ListOptions): Promise<KubeList<T>>
  /**
   * One connection; ends when the server ends it. An ERROR event rejects with its StatusError (410 Expired: list
   * again).
   */
  watch<T extends KubeObject>(gvr: GroupVersionResource, options: WatchOptions): AsyncIterable<WatchEvent<T>>
  create<T extends KubeObject>(gvr: GroupVersionResource, object: T, options: WriteOptions): Promise<T>
  /** PUT; rejects with Conflict if the resourceVersion of the object is not the current one. */
  update<T extends KubeObject>(gvr: GroupVersionResource, object: T, options: WriteOptions): Promise<T>
  patch<T extends KubeObject>(
    gvr: GroupVersionResource,
    ref: ObjectRef,
    type: PatchType,
    patch: unknown,
    options: WriteOptions,
  ): Promise<T>
  delete(gvr: GroupVersionResource, ref: ObjectRef, options: DeleteOptions): Promise<void>
  /** The parsed JSON of any path, such as `/version`; undefined if the response is empty. */
  raw(path: string, options: RawOptions): Promise<unknown>
  /** The bytes of a successful response as they arrive. Rejects with the server's StatusError otherwise. */
  stream(path: string, options: Waiting & { readonly accept?: string }): Promise<AsyncIterable<Uint8Array>>
}

export interface RawOptions extends Waiting {
  /** Default GET. */
  readonly method?: string
  /** Sent as JSON. */
  readonly body?: unknown
  /** Default `application/json`. */
  readonly accept?: string
}
