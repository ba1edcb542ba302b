// KubeClient over a Transport. Strict: a response that the API does not allow is an error and never ignored.
import { parseJsonText } from '#apimachinery/json/index.ts'
import { resourcePath, type GroupVersionResource, type KubeList, type KubeObject } from '#apimachinery/meta/index.ts'
import { internalError, isStatusError, requestEntityTooLarge } from '#apimachinery/status/index.ts'
import { yieldEvery } from '#async/index.ts'
import type {
  DeleteOptions,
  KubeClient,
  ListOptions,
  ObjectRef,
  PatchType,
  RawOptions,
  Waiting,
  WatchEvent,
  WatchOptions,
  WriteOptions,
} from './client.ts'
import { isStatus, linesOf, parseAnswer, readBody, readJson, statusErrorOf } from './response.ts'
import { SilentConnection, type Transport, type TransportResponse } from './transport.ts'

export interface ClientOptions {
  /** Prefix of every path, such as `/clusters/acme` or `/clusters/*`. */
  readonly basePath?: string
  /**
   * The user agent, from which the server derives the manager in managedFields. Default: the transport's user agent.
   */
  readonly userAgent?: string
  /** Objects per page of a list. Default 500. */
  readonly pageSize?: number
  /** Size limit of a response, in bytes. Default 256 MiB. */
  readonly maxBytes?: number
  /** Size limit of an event of a watch, in bytes. Default 16 MiB. */
  readonly maxEventBytes?: number
  /**
   * If a response pauses for longer than this, a request fails and a watch ends: a healthy server sends a bookmark
   * every minute. Default 75 s.
   */
  readonly maxSilenceMs?: number
  /** Size limit of a list, all its pages together, in bytes. Default: no limit. */
  readonly maxListBytes?: number
  /** Whether large responses are parsed in slices, so that other work runs in between. Default false. */
  readonly inTurns?: boolean
}

/** Options for a server whose responses are bounded by `boundedTransport`. */
export const untrustedServer: ClientOptions = {
  maxBytes: 16 << 20,
  maxEventBytes: 8 << 20,
  maxListBytes: 512 << 20,
  inTurns: true,
}

/** Milliseconds of work on a response between two turns of the event loop. */
const sliceMs = 5
/** Bytes up to which an event of a watch is parsed at once. */
const maxEventAtOnce = 64 * 1024
/** Maximum number of pages of one list. */
const maxPages = 10_000

const patchTypes: Record<PatchType, string> = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
}

const json = 'application/json'
const metadataList = `application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,${json}`
const metadataOne = `application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,${json}`

/** The verbs over this transport. The caller disposes of the transport. */
export function createClient(transport: Transport, options: ClientOptions = {}): KubeClient {
  return new Client(transport, options)
}

class Client implements KubeClient {
  readonly #transport: Transport
  readonly #options: Required<Omit<ClientOptions, 'userAgent'>>
  readonly #headers: Readonly<Record<string, string>>

  constructor(
    transport: Transport,
    {
      basePath = '',
      userAgent,
      pageSize = 500,
      maxBytes = 256 << 20,
      maxEventBytes = 16 << 20,
      maxSilenceMs = 75_000,
      maxListBytes = Infinity,
      inTurns = false,
    }: ClientOptions,
  ) {
    this.#transport = transport
    this.#headers = userAgent === undefined ? {} : { 'user-agent': userAgent }
    const bounds = { pageSize, maxBytes, maxEventBytes, maxSilenceMs, maxListBytes, inTurns }
    this.#options = { basePath: basePath.replace(/\/+$/, ''), ...bounds }
  }

  async get<T extends KubeObject>(
    gvr: GroupVersionResource,
    ref: ObjectRef,
    { signal, subresource }: Waiting & { subresource?: string },
  ): Promise<T> {
    return (await this.#json('GET', pathOf(gvr, ref, subresource), { signal })) as T
  }

  async tryGet<T extends KubeObject>(
    gvr: GroupVersionResource,
    ref: ObjectRef,
    options: Waiting,
  ): Promise<T | undefined> {
    try {
      return await this.get<T>(gvr, ref, options)
    } catch (error) {
      if (isStatusError(error, 'NotFound')) return undefined
      throw error
    }
  }

  async list<T extends KubeObject>(gvr: GroupVersionResource, options: ListOptions): Promise<KubeList<T>> {
    if (options.limit !== undefined || options.continue !== undefined) return await this.#page<T>(gvr, options)
    try {
      return await this.#joined<T>(gvr, options)
    } catch (error) {
      // The continue token expired before the last page: a list without pages has no token.
      if (!isStatusError(error, 'Expired')) throw error
      return await this.#page<T>(gvr, options)
    }
  }

  async #joined<T extends KubeObject>(gvr: GroupVersionResource, options: ListOptions): Promise<KubeList<T>> {
    const paging = { size: this.#options.pageSize, bytes: 0 }
    const list = await this.#fittingPage<T>(gvr, options, paging)
    for (let pages = 1; list.metadata.continue; pages++) {
      if (pages >= maxPages) throw requestEntityTooLarge(`the list of ${gvr.resource} has more than ${maxPages} pages`)
      const { resourceVersion: _first, ...rest } = options
      const next = await this.#fittingPage<T>(gvr, { ...rest, continue: list.metadata.continue }, paging)
      for (const item of next.items) list.items.push(item)
      list.metadata = next.metadata
    }
    delete list.metadata.remainingItemCount
    return list
  }

  /**
   * A page of a list. If the page exceeds the size limit of a response, this page and all later ones are requested with
   * fewer objects.
   */
  async #fittingPage<T extends KubeObject>(
    gvr: GroupVersionResource,
    options: ListOptions,
    paging: { size: number; bytes: number },
  ): Promise<KubeList<T>> {
    for (;;) {
      try {
        const page = await this.#page<T>(
          gvr,
          { ...options, limit: paging.size },
          (bytes) => void (paging.bytes += bytes),
        )
        // What is kept of each object is for the caller to bound.
        if (options.keep === undefined && paging.bytes > this.#options.maxListBytes) break
        return page
      } catch (error) {
        if (!isStatusError(error, 'RequestEntityTooLarge') || paging.size === 1) throw error
        paging.size = Math.max(1, Math.floor(paging.size / 8))
      }
    }
    throw requestEntityTooLarge(`the list of ${gvr.resource} is larger than ${this.#options.maxListBytes} bytes`)
  }

  async #page<T extends KubeObject>(
    gvr: GroupVersionResource,
    options: ListOptions,
    counted?: (bytes: number) => void,
  ): Promise<KubeList<T>> {
    const query = selection(options)
    if (options.limit !== undefined) query.set('limit', String(options.limit))
    if (options.storedOnly) query.set('storedOnly', 'true')
    if (options.continue) query.set('continue', options.continue)
    if (options.resourceVersion !== undefined && options.resourceVersion !== '') {
      query.set('resourceVersion', options.resourceVersion)
      // Without `resourceVersionMatch`, a limit would turn "at least this new" into "exactly this one".
      query.set('resourceVersionMatch', 'NotOlderThan')
    }
    const accept = options.metadataOnly ? metadataList : json
    const path = withQuery(resourcePath(gvr, scopeOf(options)), query)
    const list = listOf<T>(await this.#json('GET', path, { signal: options.signal, accept }, counted), path)
    const { keep } = options
    if (keep !== undefined) list.items = list.items.map((item) => keep(item) as T)
    return list
  }

  async *watch<T extends KubeObject>(gvr: GroupVersionResource, options: WatchOptions): AsyncGenerator<WatchEvent<T>> {
    const query = selection(options)
    query.set('watch', 'true')
    query.set('allowWatchBookmarks', 'true')
    if (options.resourceVersion) query.set('resourceVersion', options.resourceVersion)
    if (options.timeoutSeconds !== undefined) query.set('timeoutSeconds', String(options.timeoutSeconds))
    if (options.sendInitialEvents) {
      query.set('sendInitialEvents', 'true')
      query.set('resourceVersionMatch', 'NotOlderThan')
    }
    const path = withQuery(resourcePath(gvr, scopeOf(options)), query)
    const { signal } = options
    const response = await this.#send('GET', path, { signal, accept: options.metadataOnly ? metadataOne : json })
    if (response.status !== 200) await readJson(response, { maxBytes: this.#options.maxBytes })
    try {
      const turn = this.#turn(signal)
      for await (const line of linesOf(response.body, { maxBytes: this.#options.maxEventBytes }))
        yield eventOf<T>(
          turn === undefined || line.length <= maxEventAtOnce
            ? parsed(line, 'a watch')
            : await parsedInTurns(Buffer.from(line), 'a watch', turn),
        )
    } catch (error) {
      // A silent connection counts as a watch that the server ended: the caller resumes either way.
      if (!((error as Error).cause instanceof SilentConnection)) throw error
    }
    signal.throwIfAborted()
  }

  async create<T extends KubeObject>(gvr: GroupVersionResource, object: T, options: WriteOptions): Promise<T> {
    const { namespace, name } = object.metadata
    const target = options.subresource === undefined ? {} : { name: name ?? '', subresource: options.subresource }
    const path = resourcePath(gvr, { ...(namespace === undefined ? {} : { namespace }), ...target })
    return await this.#write<T>({ method: 'POST', path, value: object }, options)
  }

  async update<T extends KubeObject>(gvr: GroupVersionResource, object: T, options: WriteOptions): Promise<T> {
    const { namespace, name = '' } = object.metadata
    const path = pathOf(gvr, { name, ...(namespace === undefined ? {} : { namespace }) }, options.subresource)
    return await this.#write<T>({ method: 'PUT', path, value: object }, options)
  }

  async patch<T extends KubeObject>(
    gvr: GroupVersionResource,
    ref: ObjectRef,
    type: PatchType,
    patch: unknown,
    options: WriteOptions,
  ): Promise<T> {
    const path = pathOf(gvr, ref, options.subresource)
    return await this.#write<T>({ method: 'PATCH', path, value: patch, contentType: patchTypes[type] }, options)
  }

  async delete(gvr: GroupVersionResource, ref: ObjectRef, { signal, ...options }: DeleteOptions): Promise<void> {
    const { uid, resourceVersion, ...rest } = options
    const preconditions = {
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
    }
    const asked = Object.keys(preconditions).length > 0 ? { ...rest, preconditions } : rest
    const body = Object.keys(asked).length > 0 ? { kind: 'DeleteOptions', apiVersion: 'v1', ...asked } : undefined
    await this.#json('DELETE', pathOf(gvr, ref), { signal, body })
  }

  async stream(path: string, { signal, accept = '*/*' }: Waiting & { readonly accept?: string }) {
    const response = await this.#send('GET', path, { signal, accept })
    if (response.status < 200 || response.status > 299) await readJson(response, { maxBytes: this.#options.maxBytes })
    return response.body
  }

  async raw(path: string, { signal, method = 'GET', body, accept = json }: RawOptions): Promise<unknown> {
    const response = await this.#send(method, path, { signal, accept, body })
    if (response.status >= 200 && response.status <= 299) {
      const bytes = await readBody(response, { maxBytes: this.#options.maxBytes })
      return bytes.length === 0 ? undefined : await parsedInTurns(bytes, path, this.#turn(signal))
    }
    return await readJson(response, { maxBytes: this.#options.maxBytes })
  }

  async #write<T>(
    {
      method,
      path,
      value,
      contentType = json,
    }: {
      readonly method: string
      readonly path: string
      readonly value: unknown
      readonly contentType?: string
    },
    options: WriteOptions,
  ): Promise<T> {
    const query = new URLSearchParams()
    if (options.dryRun) query.set('dryRun', 'All')
    if (options.fieldManager !== undefined) query.set('fieldManager', options.fieldManager)
    if (options.force !== undefined) query.set('force', String(options.force))
    const { signal, headers } = options
    const request = { signal, body: value, contentType, ...(headers === undefined ? {} : { headers }) }
    return (await this.#json(method, withQuery(path, query), request)) as T
  }

  async #json(method: string, path: string, request: SendOptions, counted?: (bytes: number) => void): Promise<unknown> {
    const response = await this.#send(method, path, request)
    const { maxBytes } = this.#options
    return await readJson(response, { maxBytes, turn: this.#turn(request.signal), counted })
  }

  /** The pause between two slices of parsing; undefined if responses are parsed at once. */
  #turn(signal: AbortSignal): (() => Promise<void> | undefined) | undefined {
    return this.#options.inTurns ? yieldEvery(sliceMs, signal) : undefined
  }

  async #send(
    method: string,
    path: string,
    { signal, accept = json, body, contentType = json, headers = {} }: SendOptions,
  ): Promise<TransportResponse> {
    return await this.#transport.request({
      method,
      path: this.#options.basePath + path,
      headers: { ...this.#headers, ...headers, accept, ...(body === undefined ? {} : { 'content-type': contentType }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal,
      maxSilenceMs: this.#options.maxSilenceMs,
    })
  }
}

interface SendOptions {
  readonly signal: AbortSignal
  readonly accept?: string
  readonly body?: unknown
  readonly contentType?: string
  readonly headers?: Readonly<Record<string, string>>
}

function pathOf(gvr: GroupVersionResource, { namespace, name }: ObjectRef, subresource?: string): string {
  // An empty name would turn one object into the whole collection.
  if (name === '') throw internalError(`no name was given for ${gvr.resource}`)
  return resourcePath(gvr, {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(subresource === undefined ? {} : { subresource }),
  })
}

function scopeOf({ namespace }: { readonly namespace?: string }): { namespace?: string } {
  return namespace === undefined ? {} : { namespace }
}

function selection({
  labelSelector,
  fieldSelector,
  shardSelector,
}: {
  readonly labelSelector?: string
  readonly fieldSelector?: string
  readonly shardSelector?: string
}): URLSearchParams {
  const query = new URLSearchParams()
  if (labelSelector) query.set('labelSelector', labelSelector)
  if (fieldSelector) query.set('fieldSelector', fieldSelector)
  if (shardSelector) query.set('shardSelector', shardSelector)
  return query
}

function withQuery(path: string, query: URLSearchParams): string {
  return query.size === 0 ? path : `${path}?${query.toString()}`
}

/** kube-apiserver leaves apiVersion and kind out of the items of lists of built-in kinds: they follow from the list. */
function listOf<T extends KubeObject>(value: unknown, path: string): KubeList<T> {
  const list = value as KubeList<T>
  if (typeof list.kind !== 'string' || typeof list.apiVersion !== 'string' || typeof list.metadata !== 'object') {
    throw internalError(`the answer of "${path}" is not a list`)
  }
  // Go writes an empty slice as null.
  const items = (list.items as T[] | null | undefined) ?? []
  const kind = list.kind.replace(/List$/, '')
  for (const [index, item] of items.entries()) {
    if ((item.kind as string | undefined) === undefined) items[index] = { ...item, apiVersion: list.apiVersion, kind }
  }
  return { ...list, items }
}

function eventOf<T extends KubeObject>(value: unknown): WatchEvent<T> {
  const event = value as { type?: unknown; object?: unknown }
  switch (event.type) {
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED':
    case 'BOOKMARK':
      return event as WatchEvent<T>
    case 'ERROR':
      if (isStatus(event.object)) throw statusErrorOf(event.object)
      throw internalError('a watch sent an ERROR event whose object is not a Status')
    default:
      throw internalError(
        `a watch sent an event of unknown type "${typeof event.type === 'string' ? event.type : typeof event.type}"`,
      )
  }
}

async function parsedInTurns(
  bytes: Uint8Array,
  where: string,
  turn: (() => Promise<void> | undefined) | undefined,
): Promise<unknown> {
  try {
    return await parseAnswer(bytes, turn)
  } catch (error) {
    if (isStatusError(error, 'RequestEntityTooLarge')) throw error
    throw internalError(`the answer of "${where}" is not JSON`, error)
  }
}

function parsed(text: string, where: string): unknown {
  try {
    return parseJsonText(text)
  } catch (error) {
    throw internalError(`the answer of "${where}" is not JSON`, error)
  }
}
