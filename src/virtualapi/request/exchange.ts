// A request and its answer, and what the stages have found out about it.
import type { DetailedPeerCertificate } from 'node:tls'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import { WorkBudget } from '#apimachinery/work-budget/index.ts'
import { abortable } from '#async/index.ts'
import { auditIdOf, type Named, type RequestAudit } from './request-audit.ts'
import type { LogicalCluster } from './logical-cluster.ts'
import type { Peer, Tenure } from './ownership.ts'
import type { UserInfo } from './user-info.ts'
import type { RequestInfo } from './request-info.ts'

/** A request as received, on a socket or from within the process. */
export interface IncomingRequest {
  readonly method: string
  /** Path and query as sent. */
  readonly url: string
  /** Raw headers: name, value, name, value. Repeated headers are not joined. */
  readonly rawHeaders: readonly string[]
  readonly peerCertificate: DetailedPeerCertificate | undefined
  /** Address of the connection's peer; absent for requests from within the process. */
  readonly peerAddress?: () => string | undefined
  /** To be called when the client is known to be somebody: its connection counts no longer among those of strangers. */
  readonly known?: () => void
  /** A body of unknown length follows, which HTTP/2 allows without a header. */
  readonly hasOpenBody?: boolean
  /** Reads the whole body. Rejects with 413 above the limit. */
  readonly body: () => Promise<Uint8Array>
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal
  /** Aborted when the server stops. Long-running requests end then; others are still answered. */
  readonly stopping?: AbortSignal
  /** The user of a request from within the process, which needs no credentials. */
  readonly loopbackUser?: UserInfo
  /** Another process of ours passed it on: it is answered here or refused. */
  readonly isForwarded?: boolean
}

export interface BytesResponse {
  readonly kind: 'bytes'
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}
/** Chunks that are encoded when they are consumed. */
export interface Chunks extends Iterable<Uint8Array> {
  /** Total size in bytes, if known in advance. */
  readonly bytes?: number
  /** True if a chunk is slow to encode: then the event loop is yielded before each, however small they are. */
  readonly isCostly?: boolean
  /** Returns a chunk that was sent, so that its memory can be reused. */
  readonly release?: (chunk: Uint8Array) => void
}

/** An answer in chunks that are encoded as the client reads them. */
export interface ChunkedResponse {
  readonly kind: 'chunks'
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly chunks: Chunks
  /** Approximate size in bytes. */
  readonly about: number
  /**
   * Bytes that it keeps in memory alone; default: a part of `about`, because most of its bytes are those of the watch
   * cache.
   */
  readonly held?: number
}
/** Headers are sent at once, chunks as they arrive; ends when the iterable ends. */
export interface StreamResponse {
  readonly kind: 'stream'
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly chunks: AsyncIterable<Uint8Array>
  /** How long a client may read nothing before its connection is cut, milliseconds. Default: for ever. */
  readonly maxStallMs?: number
  /** How long the whole answer may take before the connection is cut, milliseconds. Default: for ever. */
  readonly maxMs?: number
}
/** Where a push writes. */
export interface Sink {
  /** Returns false if the push must wait for `resume` before it writes more. */
  write(chunk: Uint8Array): boolean
  /** Ends the answer. Nothing may follow. */
  end(): void
  /** Cuts the answer off. Nothing may follow. */
  fail(error: unknown): void
}
/** A source that writes to a Sink whenever it has something. */
export interface Push {
  resume(): void
  /** Writes what is pending, then ends the sink. */
  end(): void
  /** The client is gone: never calls the sink again. */
  close(): void
}
/** A long-lived answer (a watch) that is written whenever something happens. It retains nothing else of the request. */
export interface PushResponse {
  readonly kind: 'push'
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** How long a client may read nothing before its connection is cut, milliseconds. */
  readonly maxStallMs: number
  /**
   * Starts the push. Either this or `drop` is called, once; the caller closes the push. Does not write before it
   * returns.
   */
  readonly begin: (sink: Sink) => Push
  readonly drop: () => void
}
/** Another process answers. */
export interface ForwardResponse {
  readonly kind: 'forward'
  readonly to: Peer
  /** It may last for long, and ends when the server stops. */
  readonly isLongRunning: boolean
  /**
   * The span of the request in this process, which lasts until the other one answers; absent where nothing is traced.
   */
  readonly trace?: { readonly traceparent: string; readonly answered: (status: number) => void }
}
export type ApiResponse = BytesResponse | ChunkedResponse | StreamResponse | PushResponse
/** An answer as it is sent. */
export type SentResponse = BytesResponse | SentChunks | StreamResponse | PushResponse
/** A chunked answer; each chunk is encoded in a turn of its flow. */
export interface SentChunks extends ChunkedResponse {
  /** Awaited before each chunk, so that other flows are served; undefined: no need to wait. */
  readonly turn: () => Promise<void> | undefined
  /** How long a client may read nothing before its connection is cut, milliseconds. */
  readonly maxStallMs: number
  /** How long the whole answer may take before the connection is cut, milliseconds. */
  readonly maxMs: number
}

/**
 * Bounds of what webhooks and policies can add to an audit line: annotations, and characters of all of them together.
 */
const maxAnnotations = 200
const maxAnnotationCharacters = 256 * 1024

/** The findings of the stages about a request so far. A stage reads only members that an earlier stage has set. */
export class Exchange {
  readonly request: IncomingRequest
  /** Aborted when the client disconnects or the deadline is over. */
  signal: AbortSignal
  /** Texts for the `Warning` header. */
  readonly warnings: string[] = []
  /** The remaining cost of this request. */
  readonly work = new WorkBudget()
  /** Called when the answer is complete, in reverse order. */
  readonly cleanups: (() => void)[] = []
  answer: ApiResponse | undefined
  /** Collects the audit log of this request; undefined without an audit sink. */
  audit: RequestAudit | undefined
  /** The span of an upgrade, whose answer is told where it is written; undefined where nothing is traced. */
  trace: { answered(status: number): void } | undefined
  /** Identity of the object in the body. */
  named: Named | undefined
  /** Annotations of admission for the audit line; undefined if there are none. */
  annotations: Map<string, string> | undefined
  #annotationCharacters = 0
  #ownAuditId: string | undefined
  /** Awaited before more work for this request, so that other flows are served; undefined: no need to wait. */
  turn: () => Promise<void> | undefined = () => undefined
  /**
   * Told of the size that admission gave the object. Throws where the request must go on elsewhere: see `needsThread`.
   */
  grown: ((size: { readonly values: number; readonly bytes: number }) => void) | undefined
  /** The object has become too large for this thread; what failed for this reason is answered on another one. */
  needsThread = false
  /** Gives the place of this request in the process-wide limit to others; the result takes it back. */
  lendPlace: () => () => void = () => () => undefined
  #waits = 0
  #takeBack: (() => void) | undefined
  /** Fairness key of this request; undefined for our own controllers, which never wait. */
  flow: string | undefined
  /**
   * Headers that name the flow of API Priority and Fairness; undefined where the client may not know of the logical
   * cluster.
   */
  flowHeaders: Readonly<Record<string, string>> | undefined
  /** Unlinks the signal from the server's stop signal; for pushes, which the listener ends itself. */
  unlink: () => void = () => undefined
  #understood: RequestInfo | undefined
  #authenticated: UserInfo | undefined
  /**
   * The logical cluster of the request, if it exists. Only after authorization may the client learn that it does not.
   */
  cluster: LogicalCluster | undefined
  /** The permission to answer for a logical cluster; undefined where no other process shares them. */
  tenure: { readonly cluster: ClusterId; readonly of: Tenure } | undefined
  /** The process that answers instead of this one. */
  forwardTo: Peer | undefined

  constructor(request: IncomingRequest) {
    this.signal = request.signal
    // Reading the body also ends with the deadline, so that a slow body cannot hold the request.
    this.request = { ...request, body: () => this.#read(request) }
  }

  /**
   * Resolves as `answer`, for which somebody outside is asked: the place of this request is lent to others meanwhile.
   */
  async whileWaiting<T>(response: Promise<T>): Promise<T> {
    if (this.#waits++ === 0) this.#takeBack = this.lendPlace()
    try {
      return await response
    } finally {
      if (--this.#waits === 0) this.#takeBack?.()
    }
  }

  /** Adds an annotation to the audit line. The first of a key stays; those beyond the bounds are left out. */
  annotate(key: string, value: string): void {
    this.annotations ??= new Map()
    const characters = this.#annotationCharacters + key.length + value.length
    if (this.annotations.size >= maxAnnotations || characters > maxAnnotationCharacters || this.annotations.has(key))
      return
    this.#annotationCharacters = characters
    this.annotations.set(key, value)
    this.audit?.annotate(key, value)
  }

  /** Sets the identity of the object in the body, for the audit log. */
  names(named: Named): void {
    this.named = named
    this.audit?.names(named)
  }

  async #read(request: IncomingRequest): Promise<Uint8Array> {
    const body = await abortable(request.body(), this.signal)
    await this.turn()
    return body
  }

  get info(): RequestInfo {
    if (this.#understood === undefined) throw new Error('a stage ran before the request was understood')
    return this.#understood
  }
  set info(info: RequestInfo) {
    this.#understood = info
  }
  get isUnderstood(): boolean {
    return this.#understood !== undefined
  }
  get user(): UserInfo {
    if (this.#authenticated === undefined) throw new Error('a stage ran before the client was authenticated')
    return this.#authenticated
  }
  set user(user: UserInfo) {
    this.#authenticated = user
  }
  get isAuthenticated(): boolean {
    return this.#authenticated !== undefined
  }

  /** The audit id: from the client's header if valid, else a new one. */
  get auditId(): string {
    return (this.#ownAuditId ??= auditIdOf(this.header('audit-id')))
  }

  /** Size of the body in bytes by its headers; Infinity if unknown, 0 if there is no body. */
  get contentLength(): number {
    const { method, hasOpenBody = false } = this.request
    if (method === 'GET' || method === 'HEAD') return 0
    const length = this.header('content-length')
    if (length !== undefined) return Number(length)
    return hasOpenBody || this.header('transfer-encoding') !== undefined ? Infinity : 0
  }

  /** The first header of this name (any case), or undefined. */
  header(name: string): string | undefined {
    return headerOf(this.request.rawHeaders, name)
  }
}

/** The first header of this lower-case name among raw pairs. */
export function headerOf(rawHeaders: readonly string[], name: string): string | undefined {
  for (let i = 0; i < rawHeaders.length; i += 2) if (isHeader(rawHeaders[i], name)) return rawHeaders[i + 1]
  return undefined
}

/**
 * Whether a raw name is this lower-case one. Asked so often of each request that most names are told apart by their
 * length.
 */
function isHeader(raw: string | undefined, name: string): boolean {
  return raw?.length === name.length && raw.toLowerCase() === name
}
