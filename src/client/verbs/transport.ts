// Byte transport to a Kubernetes API: over TLS, or inside the process (the loopback of the virtual API server).
import type { Duplex } from 'node:stream'

export interface TransportRequest {
  readonly method: string
  /** Path and query below the server's base, such as `/api/v1/pods?limit=1`. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array | string
  readonly signal: AbortSignal
  /**
   * If the body of the response pauses for longer than this, reading it fails with SilentConnection. Default: no limit.
   */
  readonly maxSilenceMs?: number
}

/**
 * The connection may be dead without an error. If this error is the reason of an abort, other connections to the server
 * may be dead, too.
 */
export class SilentConnection extends Error {
  override readonly name = 'SilentConnection'
}

export interface TransportResponse {
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  /** Must be read to its end or ended by `return()`. The signal of the request ends it too. */
  readonly body: AsyncIterable<Uint8Array>
}

/** A successful HTTP upgrade (101). `socket` speaks the other protocol; `head` is what was already received of it. */
export interface UpgradedConnection {
  readonly headers: readonly string[]
  readonly socket: Duplex
  readonly head: Uint8Array
}

export interface Transport extends AsyncDisposable {
  /** Resolves with any response. Rejects with ServiceUnavailable if there was none, with signal.reason when aborted. */
  request(request: TransportRequest): Promise<TransportResponse>
  /**
   * Asks for an upgrade with these raw header pairs (Connection, Upgrade and the protocol's own among them).
   * Resolves with the connection, or with the response if the server refused.
   */
  upgrade(request: {
    readonly method: string
    readonly path: string
    readonly rawHeaders: readonly string[]
    readonly signal: AbortSignal
  }): Promise<{ upgraded: UpgradedConnection } | { refused: TransportResponse }>
}
