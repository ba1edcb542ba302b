// Objects, or their metadata, that a list fills and a watch changes.
import { clusterAnnotation } from '#console/table/rows.ts'
import type { Sink, StreamEvent } from './follow.ts'
import type { AnyObject } from './objects.ts'

export const metadataListType = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1'
export const metadataType = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1'

export interface ObjectList {
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string }
  readonly items?: readonly AnyObject[]
}
/** An event has the object itself where a list has its items. */
type Streamed = ObjectList & Partial<AnyObject>

/** More objects than these are not kept. */
const maxObjects = 100_000

export interface StoreOptions {
  /** Written on each object, because metadata and items of lists do not say their kind. */
  readonly kind: string
  /** The logical cluster of objects that do not name theirs. Default: none. */
  readonly cluster?: string
  /** Objects that are not kept. Default: all are. */
  readonly isKept?: (object: AnyObject) => boolean
  /** Annotations that are kept, by the beginning of their names. Default: all. */
  readonly annotations?: RegExp
}

export class ObjectStore implements Sink<Streamed> {
  #objects = new Map<string, AnyObject>()
  #next: Map<string, AnyObject> | undefined
  readonly #options: StoreOptions

  constructor(options: StoreOptions) {
    this.#options = options
  }

  get isFull(): boolean {
    return (this.#next ?? this.#objects).size >= maxObjects
  }

  values(): Iterable<AnyObject> {
    return this.#objects.values()
  }

  beginList(): void {
    this.#next = new Map()
  }

  addPage({ items = [] }: Streamed): void {
    for (const object of items) this.#put(this.#next ?? this.#objects, object)
  }

  endList(): void {
    this.#objects = this.#next ?? this.#objects
    this.#next = undefined
  }

  apply({ type, object }: StreamEvent<Streamed>): string | undefined {
    const { metadata } = object
    if (metadata === undefined || !('name' in metadata)) return undefined
    const one = object as AnyObject
    if (type === 'DELETED') this.#objects.delete(keyOf(one))
    else this.#put(this.#objects, one)
    return one.metadata.resourceVersion
  }

  #put(objects: Map<string, AnyObject>, object: AnyObject): void {
    const { kind, cluster, isKept, annotations: pattern } = this.#options
    const isNew = !objects.has(keyOf(object))
    if (isKept?.(object) === false || (isNew && objects.size >= maxObjects)) {
      objects.delete(keyOf(object))
      return
    }
    const { managedFields: _, ...metadata } = object.metadata as AnyObject['metadata'] & { managedFields?: unknown }
    const annotations = cluster === undefined ? {} : { [clusterAnnotation]: cluster }
    const named = { ...metadata, annotations: { ...annotations, ...matching(metadata.annotations, pattern) } }
    objects.set(keyOf(object), { ...object, kind, metadata: named })
  }
}

function keyOf({ metadata: { uid, namespace = '', name } }: AnyObject): string {
  return uid ?? `${namespace}/${name}`
}

function matching(
  annotations: AnyObject['metadata']['annotations'] = {},
  pattern: RegExp | undefined,
): Record<string, string> {
  if (pattern === undefined) return annotations
  return Object.fromEntries(Object.entries(annotations).filter(([name]) => pattern.test(name)))
}
