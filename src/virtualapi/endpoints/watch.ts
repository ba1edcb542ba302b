// A watch: what is there (where asked for), then every change once, as lines of JSON.
import { Buffer } from 'node:buffer'
import { apiVersionOf, encodeJson, zeroRevision, type Revision } from '../../apimachinery/meta/index.ts'
import { expired, isStatusError, notAcceptable, type StatusError } from '../../apimachinery/status/index.ts'
import { isStoreError } from '../../store/index.ts'
import type { Entry, HubEvent, HubWatch } from '../../store/hub/index.ts'
import { viewOf, type ObjectView } from '../codec/representations.ts'
import { stampRevision } from '../registry/object-bytes.ts'
import type { ResourceDefinition } from '../registry/resource-definition.ts'
import type { Answer } from '../server/exchange.ts'
import type { Call } from './call.ts'
import { listOptionsOf } from './list-options.ts'
import type { ServerParts } from '../server/parts.ts'
import { requireRevision, waitForRevision } from './read-position.ts'
import { selectionOf, type Selection } from './selection.ts'
import type { WatchClock } from './watch-clock.ts'

const minTimeoutSeconds = 1800
/** A watcher that reads nothing has fallen out of the hub's bounds long before: it lists again. */
const maxStallMs = 60_000
/** Of the initial state. */
const chunkBytes = 128 * 1024
const streamHeaders = { 'content-type': 'application/json', 'cache-control': 'no-cache, private' }
type EventType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'

export interface WatchPlan {
  readonly definition: ResourceDefinition
  readonly selection: Selection
  readonly view: ObjectView
  /** The bytes of an entry where they are not its own: over all logical clusters they name whose it is. */
  readonly entryBytes?: (entry: Pick<Entry, 'key' | 'bytes'>) => Uint8Array
  /** State to send as ADDED before the changes; undefined = only changes. Taken out when it is sent: the watch lives on. */
  initial: readonly Entry[] | undefined
  /** Mark the end of the initial state by an annotated bookmark (KEP-3157). */
  readonly marksInitialEnd: boolean
  readonly bookmarks: boolean
  readonly watch: HubWatch
  readonly since: Revision
  readonly timeoutMs: number
  /** See Exchange: thousands of watchers of one tenant hear of a change one after the other, and others in between. */
  readonly turn: () => Promise<void> | undefined
}

export async function watchObjects(call: Call): Promise<Answer> {
  const { definition, representation, query, parts, target, objects, request, exchange } = call
  if (representation.format === 'yaml')
    throw notAcceptable('only the following media types are accepted: application/json;stream=watch')
  const options = watchOptions(query)
  const selection = selectionOf(query, definition, request.name === '' ? {} : { name: request.name })
  const late = options.sendInitialEvents ? await notThere(parts, options.since, exchange.signal) : undefined
  if (late !== undefined) return late
  const scope = {
    resource: definition.storageKey,
    ...(request.namespace === '' ? {} : { namespace: request.namespace }),
  }
  // The state and the place in the stream are taken in one step, so that nothing falls between.
  const since = options.sendInitialEvents || options.since === 0 ? objects.revision() : options.since
  const initial = options.sendInitialEvents ? objects.list(scope) : undefined
  const watch = await openWatch(() => objects.watch(scope, { since, signal: exchange.signal }))
  const view = viewOf(definition, representation, {
    includeObject: query.get('includeObject') ?? 'Metadata',
    now: target.context.now,
  })
  const { bookmarks, timeoutMs } = options
  const marksInitialEnd = options.sendInitialEvents && bookmarks
  return watchAnswer(
    { definition, selection, view, initial, watch, since, bookmarks, timeoutMs, marksInitialEnd, turn: exchange.turn },
    parts.watchClock,
  )
}

/** What to answer where the position is not reached in time: the stream has begun, so the error is its one event. */
export async function notThere(
  parts: Pick<ServerParts, 'hub'>,
  since: Revision,
  signal: AbortSignal,
): Promise<Answer | undefined> {
  try {
    if (since > 0) await waitForRevision(parts, since, signal)
    return undefined
  } catch (error) {
    if (!isStatusError(error, 'Timeout')) throw error
    return { kind: 'bytes', status: 200, headers: streamHeaders, body: errorLine(error) }
  }
}

/** Opens the hub's watch; a position that is gone becomes 410. */
export async function openWatch(open: () => Promise<HubWatch>): Promise<HubWatch> {
  try {
    return await open()
  } catch (error) {
    throw isStoreError(error, 'Compacted') ? expired('The resourceVersion for the provided watch is too old.') : error
  }
}

export interface WatchOptions {
  readonly since: Revision
  /** True also where a watch asks for no position: it begins with the state. */
  readonly sendInitialEvents: boolean
  readonly bookmarks: boolean
  readonly timeoutMs: number
}

/** The parameters of a watch. Throws 422 where a real server does: clients then fall back to LIST. */
export function watchOptions(query: URLSearchParams): WatchOptions {
  const { resourceVersion, sendInitialEvents = false, bookmarks, timeoutSeconds: asked } = listOptionsOf(query, 'watch')
  const timeoutSeconds = asked > 0 ? asked : minTimeoutSeconds * (1 + Math.random())
  return {
    since: resourceVersion === '' ? zeroRevision : requireRevision(resourceVersion),
    sendInitialEvents,
    bookmarks,
    timeoutMs: Math.min(timeoutSeconds * 1000, 2 ** 31 - 1),
  }
}

/** The stream of a planned watch. Its hub watch is closed when the stream ends, however it ends. */
export function watchAnswer(plan: WatchPlan, clock: WatchClock): Answer {
  return { kind: 'stream', status: 200, headers: streamHeaders, chunks: watchChunks(plan, clock), maxStallMs }
}

async function* watchChunks(plan: WatchPlan, clock: WatchClock): AsyncGenerator<Uint8Array> {
  const { watch, since, timeoutMs, bookmarks } = plan
  using _watch = watch
  const inbox = new Inbox(watch)
  const stopTicks = bookmarks ? clock.onTick(() => inbox.put('tick')) : undefined
  const timer = setTimeout(() => inbox.put('timeout'), timeoutMs)
  const encoder = new EventEncoder(plan)
  try {
    for (const chunk of encoder.initial(takeInitial(plan))) {
      yield chunk
      const turn = plan.turn()
      if (turn !== undefined) await turn
    }
    for (;;) {
      const message = await inbox.take()
      if (message === 'ended') return
      const turn = plan.turn()
      if (turn !== undefined) await turn
      if (message === 'tick' || message === 'timeout') {
        const revision = Math.max(watch.progress(), since) as Revision
        if (bookmarks) yield encoder.bookmark(revision)
        if (message === 'timeout') return
        continue
      }
      const chunk = encoder.batch(message)
      if (chunk !== undefined) yield chunk
    }
  } catch (error) {
    if (isStoreError(error, 'Compacted'))
      yield errorLine(expired('too old resource version: the watch fell behind; list again'))
    else if (isStatusError(error)) yield errorLine(error)
    else throw error
  } finally {
    clearTimeout(timer)
    stopTicks?.()
    await inbox.close()
  }
}

function takeInitial(plan: WatchPlan): readonly Entry[] {
  const { initial = [] } = plan
  plan.initial = undefined
  return initial
}

type Message = readonly HubEvent[] | 'tick' | 'timeout' | 'ended'

/**
 * The hub's batches, and now and then a word of the clock, in one queue of at most one batch: the next is asked of the
 * hub only when this one was taken, so the hub's own bound on slow watchers holds.
 */
class Inbox {
  private readonly iterator: AsyncIterator<readonly HubEvent[]>
  private pending: Promise<IteratorResult<readonly HubEvent[]>> | undefined
  private readonly words: ('tick' | 'timeout')[] = []
  private wake: (() => void) | undefined
  private arrived: { result: IteratorResult<readonly HubEvent[]> } | { error: unknown } | undefined

  constructor(watch: HubWatch) {
    this.iterator = watch.events[Symbol.asyncIterator]()
  }

  put(word: 'tick' | 'timeout'): void {
    if (!this.words.includes(word)) this.words.push(word)
    this.wake?.()
  }

  async take(): Promise<Message> {
    this.ask()
    while (this.arrived === undefined && this.words.length === 0)
      await new Promise<void>((resolve) => {
        this.wake = resolve
      })
    // Events first: a bookmark speaks for everything before it.
    const { arrived } = this
    if (arrived === undefined) return this.words.shift() ?? 'tick'
    this.arrived = undefined
    if ('error' in arrived) throw arrived.error
    return arrived.result.done === true ? 'ended' : arrived.result.value
  }

  private ask(): void {
    if (this.pending !== undefined || this.arrived !== undefined) return
    this.pending = this.iterator.next()
    this.pending.then(
      (result) => this.arrive({ result }),
      (error: unknown) => this.arrive({ error }),
    )
  }

  private arrive(arrived: NonNullable<Inbox['arrived']>): void {
    this.pending = undefined
    this.arrived = arrived
    this.wake?.()
  }

  async close(): Promise<void> {
    await this.iterator.return?.()
  }
}

const lineEnd = Buffer.from('}\n')
const lineStarts: Record<EventType, Buffer> = {
  ADDED: Buffer.from('{"type":"ADDED","object":'),
  MODIFIED: Buffer.from('{"type":"MODIFIED","object":'),
  DELETED: Buffer.from('{"type":"DELETED","object":'),
  BOOKMARK: Buffer.from('{"type":"BOOKMARK","object":'),
  ERROR: Buffer.from('{"type":"ERROR","object":'),
}

function line(type: EventType, object: Uint8Array): Buffer {
  const end = object.at(-1) === 0x0a ? object.length - 1 : object.length
  return Buffer.concat([lineStarts[type], object.subarray(0, end), lineEnd])
}

// An event is encoded once per definition (which fixes version and form) and shared by all watchers that see it as it is.
const sharedLines = new WeakMap<HubEvent, Map<ResourceDefinition, Buffer>>()

class EventEncoder {
  private readonly plan: WatchPlan
  private first = true

  constructor(plan: WatchPlan) {
    this.plan = plan
  }

  /** The state as ADDED events and, where asked for, the bookmark that ends it; in chunks. */
  *initial(entries: readonly Entry[]): Generator<Uint8Array> {
    const { selection, marksInitialEnd, since } = this.plan
    let lines: Uint8Array[] = []
    let bytes = 0
    for (const entry of entries) {
      if (!selection.matches(entry)) continue
      const added = line('ADDED', this.encode(entry))
      lines.push(added)
      bytes += added.length
      if (bytes < chunkBytes) continue
      yield Buffer.concat(lines)
      lines = []
      bytes = 0
    }
    // Last, not first: a client takes this bookmark to mean its initial list is complete (KEP-3157).
    if (marksInitialEnd) lines.push(this.bookmark(since, { 'k8s.io/initial-events-end': 'true' }))
    if (lines.length > 0) yield Buffer.concat(lines)
  }

  /** Nothing but a revision, in the form of all other events: who watches metadata alone decodes nothing else. */
  bookmark(revision: Revision, annotations?: Record<string, string>): Uint8Array {
    const { view, definition } = this.plan
    const { first } = this
    this.first = false
    const metadata = { resourceVersion: String(revision), ...(annotations === undefined ? {} : { annotations }) }
    const { info } = definition
    return line('BOOKMARK', view.bookmark({ kind: info.kind, apiVersion: apiVersionOf(info), metadata }, first))
  }

  /** The events of a batch that this watch sees. */
  batch(events: readonly HubEvent[]): Uint8Array | undefined {
    const lines: Uint8Array[] = []
    for (const event of events) {
      const type = this.seenAs(event)
      if (type !== undefined) lines.push(this.eventLine(event, type))
    }
    return lines.length === 0 ? undefined : lines.length === 1 ? lines[0] : Buffer.concat(lines)
  }

  /** An object that begins to match is ADDED for this watch, one that ceases to is DELETED. */
  private seenAs(event: HubEvent): EventType | undefined {
    const { selection } = this.plan
    if (selection.everything) return event.type
    const matches = selection.matches(event.entry)
    if (event.type === 'ADDED') return matches ? 'ADDED' : undefined
    const { previous } = event
    if (event.type === 'DELETED')
      return (previous === undefined ? matches : selection.matches(previous)) ? 'DELETED' : undefined
    // What it was before a restart is not known: telling of a deletion too many harms nobody.
    if (previous === undefined) return matches ? 'MODIFIED' : 'DELETED'
    const matched = selection.matches(previous)
    if (matches) return matched ? 'MODIFIED' : 'ADDED'
    return matched ? 'DELETED' : undefined
  }

  private eventLine(event: HubEvent, type: EventType): Uint8Array {
    const { view, definition } = this.plan
    if (type === 'DELETED' && event.type === 'MODIFIED' && event.previous !== undefined) {
      // Left the selection: the watcher gets what it knew, at the revision at which it lost it, as from a real server.
      const { key, bytes } = event.previous
      return line(type, this.encode({ key, bytes: stampRevision(bytes, event.revision) }))
    }
    if (!view.shared || type !== event.type) return line(type, this.encode(event.entry))
    let lines = sharedLines.get(event)
    if (lines === undefined) sharedLines.set(event, (lines = new Map<ResourceDefinition, Buffer>()))
    let shared = lines.get(definition)
    if (shared === undefined) lines.set(definition, (shared = line(type, view.event(event.entry.bytes, false))))
    return shared
  }

  private encode(entry: Pick<Entry, 'key' | 'bytes'>): Uint8Array {
    const { first } = this
    const { view, entryBytes } = this.plan
    this.first = false
    return view.event(entryBytes?.(entry) ?? entry.bytes, first)
  }
}

function errorLine(error: StatusError): Buffer {
  return line('ERROR', Buffer.from(encodeJson(error.status)))
}
