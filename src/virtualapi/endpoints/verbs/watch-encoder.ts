// The events of one watch: lines of JSON, or frames of protobuf.
import { Buffer } from 'node:buffer'
import { apiVersionOf, encodeJson, type JsonObject, type Revision } from '#apimachinery/meta/index.ts'
import type { StatusError } from '#apimachinery/status/index.ts'
import type { Entry, CacheEvent } from '#store/watch-cache/index.ts'
import { ListSegments } from '#virtualapi/codec/list-segments.ts'
import { encodeProtobuf, protobufWatchEvent } from '#virtualapi/codec/protobuf/index.ts'
import type { ObjectView } from '#virtualapi/codec/representations.ts'
import { stampRevision } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'
import type { Selection } from './selection.ts'
import { SharedLines } from './shared-lines.ts'

/** The size from which a chunk of the initial state is sent, bytes. */
const chunkBytes = 64 * 1024
/**
 * How many terms of a selector are compared before other logical clusters get a turn, even if nothing is sent. The
 * first comparison with an object may decode it.
 */
const maxCompared = 64
const nothing = new Uint8Array(0)
type EventType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'

/** The objects that a watch shows, and their form. */
export interface WatchForm {
  readonly definition: ResourceDefinition
  readonly selection: Selection
  readonly view: ObjectView
  /**
   * The bytes to send for an entry; default: its own bytes. In a watch over all logical clusters, they include the
   * annotation with the logical cluster.
   */
  readonly entryBytes?: (entry: Pick<Entry, 'key' | 'bytes'>) => Uint8Array
}

const lineEnd = Buffer.from('}\n')
const lineStarts: Record<EventType, Buffer> = {
  ADDED: Buffer.from('{"type":"ADDED","object":'),
  MODIFIED: Buffer.from('{"type":"MODIFIED","object":'),
  DELETED: Buffer.from('{"type":"DELETED","object":'),
  BOOKMARK: Buffer.from('{"type":"BOOKMARK","object":'),
  ERROR: Buffer.from('{"type":"ERROR","object":'),
}

/**
 * The ADDED lines of stored objects, for watches that show all objects: watches that begin at the same time share them.
 */
const initialLines = new ListSegments({ around: [String(lineStarts.ADDED), String(lineEnd)] })

/** The parts of a line, in order; the caller joins the parts of several lines at once. */
function partsOf(
  type: EventType,
  object: Uint8Array,
  { isProtobuf }: Pick<ObjectView, 'isProtobuf'>,
): readonly Uint8Array[] {
  if (isProtobuf === true) return [protobufWatchEvent(type, object)]
  const end = object.at(-1) === 0x0a ? object.length - 1 : object.length
  return [lineStarts[type], object.subarray(0, end), lineEnd]
}

function line(type: EventType, object: Uint8Array, view: Pick<ObjectView, 'isProtobuf'>): Buffer {
  return Buffer.concat(partsOf(type, object, view))
}

function* storedLines(entries: readonly Entry[]): Generator<Uint8Array, undefined> {
  for (let from = 0; from < entries.length;) {
    const segment = initialLines.segmentAt(entries, from, undefined)
    yield initialLines.bytesOf(entries, segment, undefined)
    from = segment.to
  }
}

/** An event is encoded once per view and shared by all watches that show it unchanged. */
const sharedLines = new SharedLines()

/** Encodes the events of one watch. It has state because a Table sends its columns with the first event only. */
export class WatchEncoder {
  readonly #definition: ResourceDefinition
  readonly #selection: Selection
  readonly #view: ObjectView
  readonly #entryBytes: WatchForm['entryBytes']
  #first = true

  constructor({ definition, selection, view, entryBytes }: WatchForm) {
    this.#definition = definition
    this.#selection = selection
    this.#view = view
    this.#entryBytes = entryBytes
  }

  /** True if an event may be slow to encode, however small its object is. */
  get isCostly(): boolean {
    return this.#view.isCostly === true
  }

  /** The ERROR event that ends a failed watch. */
  error(error: StatusError): Buffer {
    return errorLine(error, this.#view)
  }

  /**
   * The initial state as ADDED events in chunks, then, if `endsAt` is given, the bookmark that ends it. A chunk may be
   * empty.
   */
  *initial(entries: readonly Entry[], endsAt: Revision | undefined): Generator<Uint8Array, undefined> {
    const isAsStored = this.#view.isStored === true && this.#selection.everything && this.#entryBytes === undefined
    let pending: Uint8Array | undefined
    for (const chunk of isAsStored ? storedLines(entries) : this.#initialLines(entries)) {
      if (pending !== undefined) yield pending
      pending = chunk
    }
    // The bookmark comes last: a client takes it to mean that its initial list is complete (KEP-3157).
    if (endsAt !== undefined) {
      const bookmark = this.bookmark(endsAt, { 'k8s.io/initial-events-end': 'true' })
      pending = pending === undefined ? bookmark : Buffer.concat([pending, bookmark])
    }
    if (pending !== undefined) yield pending
  }

  /** The matching objects as ADDED events in chunks. */
  *#initialLines(entries: readonly Entry[]): Generator<Uint8Array, undefined> {
    let parts: Uint8Array[] = []
    let bytes = 0
    let compared = 0
    for (const entry of entries) {
      compared += this.#selection.terms
      if (compared > maxCompared) {
        compared = 0
        yield nothing
      }
      if (!this.#selection.matches(entry)) continue
      for (const part of partsOf('ADDED', this.#encode(entry), this.#view)) {
        parts.push(part)
        bytes += part.length
      }
      if (bytes < chunkBytes) continue
      yield Buffer.concat(parts, bytes)
      parts = []
      bytes = 0
    }
    if (parts.length > 0) yield Buffer.concat(parts)
  }

  /**
   * A BOOKMARK event in the form of the other events, because a client that watches PartialObjectMetadata decodes no
   * other form.
   */
  bookmark(revision: Revision, annotations?: Record<string, string>): Buffer {
    const first = this.#first
    this.#first = false
    const metadata = { resourceVersion: String(revision), ...(annotations === undefined ? {} : { annotations }) }
    const { info } = this.#definition
    const object = { kind: info.kind, apiVersion: apiVersionOf(info), metadata }
    return line('BOOKMARK', this.#view.bookmark(object, first), this.#view)
  }

  /** The lines of the events that this watch shows; undefined if there are none. */
  batch(events: readonly CacheEvent[]): Buffer | undefined {
    if (events.length < 2 || !this.#selection.everything || !this.#view.shared) {
      const lines = this.#lines(events)
      return lines.length < 2 ? lines[0] : Buffer.concat(lines)
    }
    const view = this.#view
    return sharedLines.batch(events, view) ?? sharedLines.keepBatch(events, view, this.#lines(events))
  }

  #lines(events: readonly CacheEvent[]): Buffer[] {
    const lines: Buffer[] = []
    for (const event of events) {
      const type = this.#typeFor(event)
      if (type !== undefined) lines.push(this.#eventLine(event, type))
    }
    return lines
  }

  /**
   * The type of the event for this watch; undefined if the watch does not show it. An object that begins to match is
   * ADDED, an object that ceases to match is DELETED.
   */
  #typeFor(event: CacheEvent): EventType | undefined {
    const selection = this.#selection
    if (selection.everything) return event.type
    const matches = selection.matches(event.entry)
    if (event.type === 'ADDED') return matches ? 'ADDED' : undefined
    const { previous } = event
    if (event.type === 'DELETED')
      return (previous === undefined ? matches : selection.matches(previous)) ? 'DELETED' : undefined
    // The previous state is unknown after a restart. A DELETED event for an object that never matched does no harm.
    if (previous === undefined) return matches ? 'MODIFIED' : 'DELETED'
    const matched = selection.matches(previous)
    if (matches) return matched ? 'MODIFIED' : 'ADDED'
    return matched ? 'DELETED' : undefined
  }

  #eventLine(event: CacheEvent, type: EventType): Buffer {
    const { entry } = event
    if (type === 'DELETED' && event.type === 'MODIFIED' && event.previous !== undefined) {
      // The object ceased to match: as in kube-apiserver, send its previous state with the revision of the change.
      const { key, bytes } = event.previous
      return line(type, this.#encode({ key, bytes: stampRevision(bytes, event.revision) }), this.#view)
    }
    if (!this.#view.shared || type !== event.type) return line(type, this.#encode(entry), this.#view)
    const view = this.#view
    const known = sharedLines.line(event, view)
    return known ?? sharedLines.keepLine(event, view, partsOf(type, view.event(entry.bytes, false), view))
  }

  #encode(entry: Pick<Entry, 'key' | 'bytes'>): Uint8Array {
    const first = this.#first
    this.#first = false
    return this.#view.event(this.#entryBytes?.(entry) ?? entry.bytes, first)
  }
}

/** The ERROR event that ends a failed watch. */
export function errorLine({ status }: StatusError, view: Pick<ObjectView, 'isProtobuf'>): Buffer {
  const object = view.isProtobuf === true ? encodeProtobuf(status as unknown as JsonObject) : undefined
  return line('ERROR', object ?? Buffer.from(encodeJson(status)), view)
}
