// One request and its answer, on the way through the stages.
import type { DetailedPeerCertificate } from 'node:tls'
import { abortable } from '../../async/index.ts'
import { auditIdOf, type Named, type RequestAudit } from '../audit/index.ts'
import type { LogicalCluster } from '../clusters/directory.ts'
import type { UserInfo } from '../authn/user-info.ts'
import type { RequestInfo } from '../request/request-info.ts'

/** A request as it came, by a socket or from within the process. */
export interface IncomingRequest {
  readonly method: string
  /** Raw: path and query as sent. */
  readonly url: string
  /** Name, value, name, value: repeated headers stay apart. */
  readonly rawHeaders: readonly string[]
  readonly peerCertificate: DetailedPeerCertificate | undefined
  /** Of the other end of the connection; absent for requests that never touched a socket. */
  readonly peerAddress?: () => string | undefined
  /** A body of a length that no header tells is still to come, as HTTP/2 allows it. */
  readonly hasOpenBody?: boolean
  /** The body, whole. Rejects 413 above the limit. */
  readonly body: () => Promise<Uint8Array>
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal
  /** Aborted when the server stops: what does not end by itself ends then, the rest is still answered. */
  readonly stopping?: AbortSignal
  /** Set for requests that never touched a socket: who asks is known, there is nothing to prove. */
  readonly loopbackUser?: UserInfo
}

export interface BytesAnswer {
  readonly kind: 'bytes'
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}
/** Bytes that are made as they are taken. */
export interface Pieces extends Iterable<Uint8Array> {
  /** Of all of them, where that is known before. */
  readonly bytes?: number
  /** To make one takes long: each is made in its own turn, however few bytes they are. */
  readonly isCostly?: boolean
  /** Gives back a piece that was sent: its memory is used for another. */
  readonly release?: (piece: Uint8Array) => void
}

/** Bytes that are made as the client takes them. */
export interface PiecesAnswer {
  readonly kind: 'pieces'
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly pieces: Pieces
  /** Bytes of what the pieces are made of. */
  readonly about: number
}
/** Headers go out at once, chunks as they come; ends cleanly when the iterable does. */
export interface StreamAnswer {
  readonly kind: 'stream'
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly chunks: AsyncIterable<Uint8Array>
  /** A client that takes nothing for this long is cut off, milliseconds. Default: it may take its time. */
  readonly maxStallMs?: number
  /** A client that has not taken all of it by then is cut off, milliseconds. Default: the stream may go on for ever. */
  readonly maxMs?: number
}
/** Where the bytes of a push go. */
export interface Sink {
  /** Returns false where no more may follow before the push is told to resume. */
  write(chunk: Uint8Array): boolean
  /** All was told. Nothing follows. */
  end(): void
  /** It cannot be told to its end. Nothing follows. */
  fail(error: unknown): void
}
/** What pushes. */
export interface Push {
  resume(): void
  /** Ends it after what there is to tell by now: the sink is told. */
  end(): void
  /** Nobody listens any more: the sink hears nothing again. */
  close(): void
}
/** Bytes that come whenever something happens, for as long as the client wants: kept without anything else of the request. */
export interface PushAnswer {
  readonly kind: 'push'
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** A client that takes nothing for this long is cut off, milliseconds. */
  readonly maxStallMs: number
  /** Either this is called, once, or `drop`. Whoever calls it closes the push. The sink hears nothing before it returned. */
  readonly begin: (sink: Sink) => Push
  readonly drop: () => void
}
export type Answer = BytesAnswer | PiecesAnswer | StreamAnswer | PushAnswer
/** As it is sent. */
export type SentAnswer = BytesAnswer | SentPieces | StreamAnswer | PushAnswer
/** Pieces, each made when it is its turn. */
export interface SentPieces extends PiecesAnswer {
  /** Before each piece: waits where others have waited longer; undefined: go on at once. */
  readonly turn: () => Promise<void> | undefined
  /** A client that takes nothing for this long is cut off, milliseconds. */
  readonly maxStallMs: number
  /** So is one that has not taken all of it by then. */
  readonly maxMs: number
}

/** What the stages have found out so far. A stage reads only what an earlier one has set. */
export class Exchange {
  readonly request: IncomingRequest
  /** Of this exchange alone: the client's, shortened by the deadline. */
  signal: AbortSignal
  /** For `Warning` headers. */
  readonly warnings: string[] = []
  /** Run when the answer is complete, in reverse order. */
  readonly cleanups: (() => void)[] = []
  answer: Answer | undefined
  /** Gathers what is written of this request; undefined where nobody asked for it. */
  audit: RequestAudit | undefined
  /** Of the object in the body. */
  named: Named | undefined
  private ownAuditId: string | undefined
  /** Before more work for this request: waits where others have waited longer; undefined: go on at once. */
  turn: () => Promise<void> | undefined = () => undefined
  /** Whose turns they are; undefined: nobody's, our own loops wait for none. */
  flow: string | undefined
  /** Set where the signal hangs on the server's life: lets go of it, for answers that are ended in another way. */
  unlink: () => void = () => undefined
  private understood: RequestInfo | undefined
  private authenticated: UserInfo | undefined
  /** The logical cluster of the request, where it exists. Whether to tell is authorization's decision. */
  cluster: LogicalCluster | undefined

  constructor(request: IncomingRequest) {
    this.signal = request.signal
    // Who sends its body a byte at a time has no longer than anybody else.
    this.request = { ...request, body: () => this.read(request) }
  }

  /** Says which object it is about, where the URL does not. */
  names(named: Named): void {
    this.named = named
    this.audit?.names(named)
  }

  private async read(request: IncomingRequest): Promise<Uint8Array> {
    const body = await abortable(request.body(), this.signal)
    await this.turn()
    return body
  }

  get info(): RequestInfo {
    if (this.understood === undefined) throw new Error('a stage ran before the request was understood')
    return this.understood
  }
  set info(info: RequestInfo) {
    this.understood = info
  }
  get isUnderstood(): boolean {
    return this.understood !== undefined
  }
  get user(): UserInfo {
    if (this.authenticated === undefined) throw new Error('a stage ran before the client was authenticated')
    return this.authenticated
  }
  set user(user: UserInfo) {
    this.authenticated = user
  }
  get isAuthenticated(): boolean {
    return this.authenticated !== undefined
  }

  /** By which the request is known in audit lines and in the answer: the client's word, or made here. */
  get auditId(): string {
    return (this.ownAuditId ??= auditIdOf(this.header('audit-id')))
  }

  /** Bytes of the body by what the client announces; Infinity where it does not say, 0 where there is none. */
  get announcedBytes(): number {
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
  for (let i = 0; i < rawHeaders.length; i += 2) if (rawHeaders[i]?.toLowerCase() === name) return rawHeaders[i + 1]
  return undefined
}
