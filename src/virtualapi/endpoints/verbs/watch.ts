// GET with watch=true: the initial state (if asked for), then every change once, as lines of JSON.
import { zeroRevision, type Revision } from '#apimachinery/meta/index.ts'
import { expired, isStatusError, notAcceptable } from '#apimachinery/status/index.ts'
import { isStoreError } from '#store/index.ts'
import type { Entry, CacheWatch } from '#store/watch-cache/index.ts'
import { isConverted, type ConvertedDefinition } from '#virtualapi/write/conversion/conversions.ts'
import { ConvertingWatch } from '#virtualapi/write/conversion/converting-watch.ts'
import { accessHolderKey } from '#virtualapi/auth/access/index.ts'
import { viewOf, type ObjectView } from '#virtualapi/codec/representations.ts'
import type { ApiResponse, Exchange, Sink } from '#virtualapi/request/exchange.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'
import type { EndpointCall } from '#virtualapi/endpoints/call/endpoint-call.ts'
import { listOptionsOf, type ListOptions } from './list-options.ts'
import { requireRevision, waitForRevision } from './read-position.ts'
import { EndingWatch } from '#virtualapi/endpoints/call/ending-watch.ts'
import { selectionOf, shownSelection } from './selection.ts'
import { errorLine, WatchEncoder, type WatchForm } from './watch-encoder.ts'
import { WatchStream } from './watch-stream.ts'

const minTimeoutSeconds = 1800
const accessWatchMs = 5 * 60_000
/** How long a client may read nothing before its connection is cut, milliseconds. */
const maxStallMs = 60_000
const cacheControl = { 'cache-control': 'no-cache, private' }

/** The headers of a watch in this form. */
function streamHeaders({ isProtobuf = false }: Pick<ObjectView, 'isProtobuf'>): Record<string, string> {
  const type = isProtobuf ? 'application/vnd.kubernetes.protobuf;stream=watch' : 'application/json'
  return { 'content-type': type, ...cacheControl }
}

export interface WatchPlan {
  readonly form: WatchForm
  readonly watch: CacheWatch
  /** Entries to send as ADDED before the changes; undefined: only changes. */
  readonly initial: readonly Entry[] | undefined
  readonly since: Revision
  /** The least revision of bookmarks. Default `since`; 0 if revisions are not ordered. */
  readonly leastProgress?: Revision
  readonly options: WatchOptions
}

export async function watchObjects(call: EndpointCall<EndpointDependencies>): Promise<ApiResponse> {
  const { definition, representation, query, dependencies, target, objects, request, exchange } = call
  if (representation.format === 'yaml')
    throw notAcceptable('only the following media types are accepted: application/json;stream=watch')
  const given = listOptionsOf(query, 'watch')
  const named = request.name === '' ? {} : { name: request.name }
  const selection = shownSelection(selectionOf(query, definition, named), call)
  const options = boundedFor(exchange.user, watchOptions(given))
  const view = viewOf(definition, representation, {
    includeObject: query.get('includeObject') ?? 'Metadata',
    now: target.context.now,
  })
  const timeoutResponse = options.sendInitialEvents
    ? await waitForWatchRevision(dependencies, options.since, view, exchange.signal)
    : undefined
  if (timeoutResponse !== undefined) return timeoutResponse
  const scope = {
    resource: definition.storageKey,
    ...(request.namespace === '' ? {} : { namespace: request.namespace }),
  }
  // The state and the revision are read without an await in between, so that no event is lost or sent twice.
  const since = options.sendInitialEvents || options.since === 0 ? objects.revision() : options.since
  const initial = options.sendInitialEvents ? objects.list(scope) : undefined
  const opened = await openWatch(() => objects.watch(scope, { since, signal: exchange.signal }))
  const { view: through } = exchange
  const watch = through === undefined ? opened : new EndingWatch(opened, through, objects.cluster)
  const form = { definition, selection, view }
  if (!isConverted(definition)) return watchResponse({ form, watch, initial, since, options }, exchange, dependencies)
  return convertedWatch(call, definition, { form, watch, initial, since, options })
}

/** Answers a watch of objects that a conversion webhook brings into the version of the request. */
async function convertedWatch(
  { dependencies, objects: { cluster }, exchange }: EndpointCall<EndpointDependencies>,
  definition: ConvertedDefinition,
  { form, watch, initial, ...plan }: WatchPlan,
): Promise<ApiResponse> {
  const { conversions } = dependencies
  try {
    const call = { cluster, signal: exchange.signal, turn: () => exchange.turn() }
    const shown = initial && (await conversions.shownAll(definition, initial, call))
    const converting = new ConvertingWatch(
      watch,
      (entries, signal) => conversions.shownAll(definition, entries, { cluster, signal }),
      { withPrevious: !form.selection.everything },
    )
    return watchResponse({ form, watch: converting, initial: shown, ...plan }, exchange, dependencies)
  } catch (error) {
    watch[Symbol.dispose]()
    throw error
  }
}

/**
 * Waits until `since` is known. Resolves with undefined then; if it takes too long, with the response of the watch: 200
 * with the error as its only event.
 */
export async function waitForWatchRevision(
  dependencies: Pick<EndpointDependencies, 'watchCache'>,
  since: Revision,
  view: Pick<ObjectView, 'isProtobuf'>,
  signal: AbortSignal,
): Promise<ApiResponse | undefined> {
  try {
    if (since > 0) await waitForRevision(dependencies, since, signal)
    return undefined
  } catch (error) {
    if (!isStatusError(error, 'Timeout')) throw error
    return { kind: 'bytes', status: 200, headers: streamHeaders(view), body: errorLine(error, view) }
  }
}

/** Opens the watch cache's watch. Rejects with 410 if the revision is compacted. */
export async function openWatch(open: () => Promise<CacheWatch>): Promise<CacheWatch> {
  try {
    return await open()
  } catch (error) {
    throw isStoreError(error, 'Compacted') ? expired('The resourceVersion for the provided watch is too old.') : error
  }
}

export interface WatchOptions {
  readonly since: Revision
  /** True too for a watch without a resourceVersion (see `listOptionsOf`). */
  readonly sendInitialEvents: boolean
  readonly bookmarks: boolean
  readonly timeoutMs: number
}

/** The options of a watch, with defaults. Throws 400 for an invalid resourceVersion. */
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

/**
 * The options for this user: a watch with a token for others ends after minutes, because the right to use the logical
 * cluster may have been revoked.
 */
export function boundedFor({ extra }: Pick<UserInfo, 'extra'>, options: WatchOptions): WatchOptions {
  if (extra[accessHolderKey] === undefined) return options
  return { ...options, timeoutMs: Math.min(options.timeoutMs, accessWatchMs) }
}

/**
 * The response that streams a watch. The watch cache's watch is disposed when the response ends, and also if it never
 * begins.
 */
export function watchResponse(
  { form, watch, initial, since, leastProgress = since, options: { bookmarks, timeoutMs } }: WatchPlan,
  { flow }: Exchange,
  { watchClock: clock, deliveries }: EndpointDependencies,
): ApiResponse {
  const begin = (sink: Sink): WatchStream => {
    const encoder = new WatchEncoder(form)
    // If the client wants bookmarks, a bookmark marks the end of the initial state (KEP-3157).
    const state = initial && encoder.initial(initial, bookmarks ? since : undefined)
    return new WatchStream({
      watch,
      encoder,
      since: leastProgress,
      timeoutMs,
      bookmarks,
      flow,
      clock,
      deliveries,
      sink,
      initial: state,
    })
  }
  return {
    kind: 'push',
    status: 200,
    headers: streamHeaders(form.view),
    maxStallMs,
    begin,
    drop: () => watch[Symbol.dispose](),
  }
}
