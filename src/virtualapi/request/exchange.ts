// A request and its response, and the findings of the stages about it.
import type { DetailedPeerCertificate } from 'node:tls'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import { WorkBudget } from '#apimachinery/work-budget/index.ts'
import { abortable } from '#async/index.ts'
import { auditIdOf, type Named, type RequestAudit } from './request-audit.ts'
import type { LogicalCluster } from './logical-cluster.ts'
import type { Peer, Tenure } from './ownership.ts'
import type { RequestView } from './request-view.ts'
import type { UserInfo } from './user-info.ts'
import type { RequestInfo } from './request-info.ts'

export interface BodyLimit {
  /** Default 3 MiB, as in kube-apiserver. */
  readonly maxBytes?: number
}

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
  /**
   * Called when the client has proved an identity: its connection does not count as one of an unknown client any more.
   */
  readonly known?: () => void
  /** True if a body of unknown length follows, which HTTP/2 allows without a header. */
  readonly hasOpenBody?: boolean
  /** Reads the whole body, once: the limit of the first call counts. Rejects with 413 above it. */
  readonly body: (limit?: BodyLimit) => Promise<Uint8Array>
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal
  /** Aborted when the server stops. Long-running requests end then; others are still answered. */
  readonly stopping?: AbortSignal
  /** The user of a request from within the process, which needs no credentials. */
  readonly loopbackUser?: UserInfo
  /** True if another process of ours passed the request on: it is answered here or refused. */
  readonly isForwarded?: boolean
  /** The session of a browser. Its user counts, and no credentials of the request do. */
  readonly session?: RequestSession
  /** The request as the client sent it, if `url` and `rawHeaders` were rewritten: other processes get this one. */
  readonly received?: { readonly url: string; readonly rawHeaders: readonly string[] }
}

/** The use of a member through us. */
export interface MemberUse {
  readonly name: string
  /** The ServiceAccount of the member as which requests are made. */
  readonly account: { readonly namespace: string; readonly name: string }
  /** Whether the user may still do this, asked again and again while a stream is open. */
  readonly mayGoOn: (signal: AbortSignal) => Promise<boolean>
}

/** The identity behind a request of a browser. */
export interface RequestSession {
  readonly user: UserInfo
  /**
   * Rejects with 403 what the session may not do whatever the logical cluster allows, because another authority has to
   * allow it first. Absent: nothing.
   */
  readonly requireAdmitted?: (info: RequestInfo, signal: AbortSignal) => Promise<void>
  /**
   * The logical clusters that the session may read at once by `/clusters/*`. Rejects with 403 if there are too many.
   * Absent: this is decided as for every other user.
   */
  readonly scope?: (signal: AbortSignal) => Promise<ReadonlySet<ClusterId>>
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
  /** True if chunks are slow to encode: then the event loop is yielded before each chunk, however small it is. */
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
   * Bytes that the response alone keeps in memory; default: a part of `about`, because it shares most of its bytes with
   * the watch cache.
   */
  readonly held?: number
}
/** A response whose headers are sent at once, and its chunks as they arrive; ends when the iterable ends. */
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
  /** Writes a chunk. Returns false if the push must wait for `resume` before it writes more. */
  write(chunk: Uint8Array): boolean
  /** Ends the response. No call may follow. */
  end(): void
  /** Cuts the response off. No call may follow. */
  fail(error: unknown): void
}
/** A source that writes to a Sink whenever it has something. */
export interface Push {
  resume(): void
  /** Writes the pending bytes, then ends the sink. */
  end(): void
  /** Called when the client is gone: the push never calls the sink again. */
  close(): void
}
/**
 * A long-lived response (a watch) that is written whenever there is an event. It retains nothing else of the request.
 */
export interface PushResponse {
  readonly kind: 'push'
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** How long a client may read nothing before its connection is cut, milliseconds. */
  readonly maxStallMs: number
  /**
   * Starts the push. The caller calls either this or `drop`, once, and closes the push. Nothing is written before this
   * returns.
   */
  readonly begin: (sink: Sink) => Push
  readonly drop: () => void
}
/** A response that another process gives. */
export interface ForwardResponse {
  readonly kind: 'forward'
  readonly to: Peer
  /** True if the response may last for long; it then ends when the server stops. */
  readonly isLongRunning: boolean
  /**
   * The span of the request in this process, which lasts until the other process answers; absent where nothing is
   * traced.
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
 * Bounds on the annotations that webhooks and policies add to an audit line: their number, and their characters
 * together.
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
  /** Functions to call in reverse order when the response is complete. */
  readonly cleanups: (() => void)[] = []
  answer: ApiResponse | undefined
  /** Collects the audit events of this request; undefined if no log wants any. */
  audit: RequestAudit | undefined
  /** On the offload thread: whether the object in the request is to be recorded, and the object as JSON. */
  record: { json?: string } | undefined
  /**
   * The span of an upgrade, which is told the status where the response is written; undefined where nothing is traced.
   */
  trace: { answered(status: number): void } | undefined
  /** Identity of the object in the body; undefined if there is none. */
  named: Named | undefined
  /** Annotations of admission for the audit line; undefined if there are none. */
  annotations: Map<string, string> | undefined
  #annotationCharacters = 0
  #ownAuditId: string | undefined
  /** Awaited before more work for this request, so that other flows are served; undefined: no need to wait. */
  turn: () => Promise<void> | undefined = () => undefined
  /**
   * Called with the size that the object has after admission. Throws if the request must go on elsewhere: see
   * `needsThread`.
   */
  grown: ((size: { readonly values: number; readonly bytes: number }) => void) | undefined
  /**
   * True if the object has become too large for this thread: the request has failed here, and an offload thread answers
   * it if it can.
   */
  needsThread = false
  /** Gives the place of this request in the process-wide limit to others; the returned function takes it back. */
  lendPlace: () => () => void = () => () => undefined
  #waits = 0
  #takeBack: (() => void) | undefined
  /** Fairness key of this request; undefined for our own controllers, which never wait. */
  flow: string | undefined
  /**
   * Headers that name the flow of API Priority and Fairness; undefined if the client may not know of the logical
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
  /** The logical cluster of the export through whose view the request came. Its users authenticate the request. */
  provider: LogicalCluster | undefined
  /** What the request may see and write, if it came through the view of an export. */
  view: RequestView | undefined
  /** Set after authorization, for requests to the API of a member. */
  member: MemberUse | undefined
  /** The logical clusters to which a read over all of them is limited; undefined: none. */
  scope: ReadonlySet<ClusterId> | undefined
  /** The permission to answer for a logical cluster; undefined where no other process shares the logical clusters. */
  tenure: { readonly cluster: ClusterId; readonly of: Tenure } | undefined
  /**
   * `left`: the logical cluster has moved to another installation, which answers. `arrived`: it has come from one, and
   * all its objects are there. Undefined for all others.
   */
  move: 'left' | 'arrived' | undefined
  /** The process that answers instead of this one. */
  forwardTo: Peer | undefined

  constructor(request: IncomingRequest) {
    this.signal = request.signal
    // Reading the body also ends with the deadline, so that a slow body cannot hold the request.
    this.request = { ...request, body: (limit) => this.#read(request, limit) }
  }

  /**
   * Settles as `response`, which comes from outside this process: meanwhile the place of this request is lent to
   * others.
   */
  async whileWaiting<T>(response: Promise<T>): Promise<T> {
    if (this.#waits++ === 0) this.#takeBack = this.lendPlace()
    try {
      return await response
    } finally {
      if (--this.#waits === 0) this.#takeBack?.()
    }
  }

  /**
   * Adds an annotation to the audit line. The first value of a key stays; annotations beyond the bounds are left out.
   */
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

  /** True if a log asks for the object in the request: call `requested` with it then. */
  get recordsRequest(): boolean {
    return this.record !== undefined || this.audit?.recordsRequest === true
  }

  /** Sets the object in the request for the audit log, as JSON on one line. */
  requested(json: string): void {
    if (this.record !== undefined) this.record.json = json
    this.audit?.requested(json)
  }

  async #read(request: IncomingRequest, limit?: BodyLimit): Promise<Uint8Array> {
    const body = await abortable(request.body(limit), this.signal)
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
 * Whether a raw name is this lower-case name. Compares the lengths first, which rules out most names: this runs very
 * often for each request.
 */
function isHeader(raw: string | undefined, name: string): boolean {
  return raw?.length === name.length && raw.toLowerCase() === name
}
