// A watch: what is there (where asked for), then every change once, as lines of JSON.
import { zeroRevision, type Revision } from '../../apimachinery/meta/index.ts'
import { expired, isStatusError, notAcceptable } from '../../apimachinery/status/index.ts'
import { isStoreError } from '../../store/index.ts'
import type { Entry, HubWatch } from '../../store/hub/index.ts'
import { viewOf } from '../codec/representations.ts'
import type { Answer, Exchange, Sink } from '../exchange/exchange.ts'
import type { EndpointParts } from './parts.ts'
import type { EndpointCall } from './endpoint-call.ts'
import { listOptionsOf, type ListOptions } from './list-options.ts'
import { requireRevision, waitForRevision } from './read-position.ts'
import { selectionOf } from './selection.ts'
import { errorLine, WatchEncoder, type WatchForm } from './watch-encoder.ts'
import { WatchStream } from './watch-stream.ts'

const minTimeoutSeconds = 1800
/** A watcher that reads nothing has fallen out of the hub's bounds long before: it lists again. */
const maxStallMs = 60_000
const streamHeaders = { 'content-type': 'application/json', 'cache-control': 'no-cache, private' }

export interface WatchPlan {
  readonly form: WatchForm
  readonly watch: HubWatch
  /** State to send as ADDED before the changes; undefined: only changes. */
  readonly initial: readonly Entry[] | undefined
  readonly since: Revision
  readonly options: WatchOptions
}

export async function watchObjects(call: EndpointCall<EndpointParts>): Promise<Answer> {
  const { definition, representation, query, parts, target, objects, request, exchange } = call
  if (representation.format === 'yaml')
    throw notAcceptable('only the following media types are accepted: application/json;stream=watch')
  const given = listOptionsOf(query, 'watch')
  const selection = selectionOf(query, definition, request.name === '' ? {} : { name: request.name })
  const options = watchOptions(given)
  const view = viewOf(definition, representation, {
    includeObject: query.get('includeObject') ?? 'Metadata',
    now: target.context.now,
  })
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
  return watchAnswer({ form: { definition, selection, view }, watch, initial, since, options }, exchange, parts)
}

/** What to answer where the position is not reached in time: the stream has begun, so the error is its one event. */
export async function notThere(
  parts: Pick<EndpointParts, 'hub'>,
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

/** What the options of a watch come to. Throws 400 for a position that is none. */
export function watchOptions({
  resourceVersion,
  sendInitialEvents = false,
  bookmarks,
  timeoutSeconds: asked,
}: ListOptions): WatchOptions {
  const timeoutSeconds = asked > 0 ? asked : minTimeoutSeconds * (1 + Math.random())
  return {
    since: resourceVersion === '' ? zeroRevision : requireRevision(resourceVersion),
    sendInitialEvents,
    bookmarks,
    timeoutMs: Math.min(timeoutSeconds * 1000, 2 ** 31 - 1),
  }
}

/** The answer to a planned watch. Its hub watch is disposed when it ends, however it ends, and when it never begins. */
export function watchAnswer(
  { form, watch, initial, since, options: { bookmarks, timeoutMs } }: WatchPlan,
  { flow }: Exchange,
  { watchClock: clock, deliveries }: EndpointParts,
): Answer {
  const begin = (sink: Sink): WatchStream => {
    const encoder = new WatchEncoder(form)
    // A stream with bookmarks marks the end of the initial state by one (KEP-3157).
    const state = initial && encoder.initial(initial, bookmarks ? since : undefined)
    return new WatchStream({
      ...{ watch, encoder, since, timeoutMs, bookmarks, flow, clock, deliveries, sink },
      initial: state,
    })
  }
  return { kind: 'push', status: 200, headers: streamHeaders, maxStallMs, begin, drop: () => watch[Symbol.dispose]() }
}
