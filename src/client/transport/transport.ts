// How bytes reach a Kubernetes API: over TLS (client/), or within the process (the virtual API server's loopback).
import type { Duplex } from 'node:stream'

export interface TransportRequest {
  readonly method: string
  /** Path and query below the server's base, such as `/api/v1/pods?limit=1`. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array | string
  readonly signal: AbortSignal
  /** Where nothing of the answer's body comes for so long, reading it fails with a SilentConnection. Default: it may take any time. */
  readonly maxSilenceMs?: number
}

/** The connection may be dead and nobody has told. As the reason of an abort: other connections there may be dead as well. */
export class SilentConnection extends Error {
  override readonly name = 'SilentConnection'
}

export interface TransportResponse {
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  /** Chunks as they come. Must be read to its end or left by `return()`; the request's signal ends it too. */
  readonly body: AsyncIterable<Uint8Array>
}

/** An HTTP upgrade that succeeded (101): `socket` speaks the other protocol from here on; `head` came already. */
export interface UpgradedConnection {
  readonly headers: readonly string[]
  readonly socket: Duplex
  readonly head: Uint8Array
}

export interface Transport extends AsyncDisposable {
  /** Rejects with StatusError ServiceUnavailable when no answer came, with signal.reason when aborted. Any answer resolves. */
  request(request: TransportRequest): Promise<TransportResponse>
  /**
   * Asks for an upgrade with these raw header pairs (Connection, Upgrade and the protocol's own among them).
   * Resolves with the connection, or with the ordinary response where the server refused.
   */
  upgrade(request: {
    readonly method: string
    readonly path: string
    readonly rawHeaders: readonly string[]
    readonly signal: AbortSignal
  }): Promise<{ upgraded: UpgradedConnection } | { refused: TransportResponse }>
}
