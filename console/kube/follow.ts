// A list in pages and a watch after it, which keep what a page shows complete until the signal is aborted.
import { lineBatches } from './lines.ts'
import { ApiError, messageOf, request, requestJson } from './request.ts'

export const tableType = 'application/json;as=Table;v=v1;g=meta.k8s.io'

/** A page of a list: a Table, or a list of objects. */
export interface ListDocument {
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string }
}

export interface StreamEvent<D> {
  readonly type: string
  readonly object: D & { readonly code?: number; readonly message?: string }
}

/** Keeps what is listed and watched. */
export interface Sink<D> {
  /** No more objects are taken: the list ends. */
  readonly isFull: boolean
  beginList(): void
  addPage(page: D): void
  endList(): void
  /** An event of type ADDED, MODIFIED or DELETED. Returns the revision of its object, if it has one. */
  apply(event: StreamEvent<D>): string | undefined
}

/** Small, so that the first rows appear at once. */
const firstPage = 250
const laterPages = 2500
const maxBackoffMs = 20_000

export type FollowState =
  | { readonly kind: 'listing' }
  | { readonly kind: 'live' }
  | { readonly kind: 'retrying'; readonly message: string }
  /** The server refuses the list: there is nothing to wait for. */
  | { readonly kind: 'refused'; readonly message: string }

export interface Following<D extends ListDocument> {
  readonly path: string
  /** Media type of the list. */
  readonly accept: string
  /** Media type of the watch. Default: that of the list. */
  readonly acceptEvents?: string
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly sink: Sink<D>
  /** Called after each change of the sink, and with each change of the state. */
  readonly changed: (state: FollowState) => void
  readonly signal: AbortSignal
}

/** Resolves when the signal is aborted, or when the server refuses the list. */
export async function follow<D extends ListDocument>(following: Following<D>): Promise<void> {
  const { signal, changed } = following
  let failures = 0
  let revision: string | undefined
  while (!signal.aborted) {
    try {
      revision ??= await list(following)
      failures = 0
      changed({ kind: 'live' })
      revision = await watch(following, revision)
      // A server that ends each watch at once is not asked without a pause.
      await pause(250, signal)
    } catch (error) {
      if (isAborted(signal)) return
      if (isRefusal(error)) {
        changed({ kind: 'refused', message: messageOf(error) })
        return
      }
      if (isGone(error)) revision = undefined
      else {
        changed({ kind: 'retrying', message: messageOf(error) })
        await pause(Math.min(maxBackoffMs, 500 * 2 ** failures++), signal)
      }
    }
  }
}

/** A function, because the compiler takes a signal that was not aborted as one that never is. */
const isAborted = (signal: AbortSignal): boolean => signal.aborted

const isGone = (error: unknown): boolean => error instanceof ApiError && error.status === 410

function isRefusal(error: unknown): boolean {
  return error instanceof ApiError && [400, 401, 403, 404, 405, 406].includes(error.status)
}

/** Reads all pages; resolves with the revision from which to watch. */
async function list<D extends ListDocument>({
  path,
  accept,
  query,
  sink,
  changed,
  signal,
}: Following<D>): Promise<string> {
  sink.beginList()
  changed({ kind: 'listing' })
  let token: string | undefined
  let revision = ''
  for (let isFirst = true; isFirst || token !== undefined; isFirst = false) {
    const limit = String(isFirst ? firstPage : laterPages)
    const page = await requestJson<D>(path, {
      accept,
      query: { ...query, limit, continue: token },
      signal,
    })
    sink.addPage(page)
    changed({ kind: 'listing' })
    revision = page.metadata?.resourceVersion ?? revision
    token = page.metadata?.continue === '' || sink.isFull ? undefined : page.metadata?.continue
  }
  sink.endList()
  return revision
}

/** Applies events until the server ends the watch; resolves with the revision from which to go on. */
async function watch<D extends ListDocument>(following: Following<D>, since: string): Promise<string> {
  const { path, accept, acceptEvents = accept, query, sink, changed, signal } = following
  let revision = since
  const response = await request(path, {
    accept: acceptEvents,
    query: { ...query, watch: 'true', allowWatchBookmarks: 'true', resourceVersion: since },
    signal,
  })
  for await (const lines of lineBatches(response)) {
    for (const line of lines) {
      const event = JSON.parse(line) as StreamEvent<D>
      if (event.type === 'ERROR') throw new ApiError(event.object.code ?? 500, event.object)
      const own = event.type === 'BOOKMARK' ? bookmarkOf(event.object) : sink.apply(event)
      revision = own ?? revision
    }
    changed({ kind: 'live' })
  }
  return revision
}

/** Bookmarks of Tables have their revision in a row, as upstream writes them. */
function bookmarkOf(object: ListDocument & { readonly rows?: unknown }): string | undefined {
  const [row] = Array.isArray(object.rows) ? (object.rows as { object?: ListDocument }[]) : []
  return row?.object?.metadata?.resourceVersion ?? object.metadata?.resourceVersion
}

export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done)
    if (signal.aborted) done()
  })
}
