// A connection that passes through the gateway: its two legs, between which bytes pass both ways until both have ended.
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'

export interface Leg {
  readonly stream: Socket
  /** Ends the leg with a TCP reset, so that the other end does not take incomplete data for complete. */
  reset(): void
}

export function plainLeg(socket: Socket): Leg {
  return { stream: socket, reset: () => void socket.resetAndDestroy() }
}

/** `raw` carries `secure`: only a TCP socket can be reset. */
export function secureLeg(secure: TLSSocket, raw: Socket): Leg {
  return {
    stream: secure,
    reset() {
      // Resets later: promises and events of TLS run while it still reads from the TCP socket, and closing the socket
      // then crashes Node 24.
      setImmediate(() => {
        if (!raw.destroyed) raw.resetAndDestroy()
        secure.destroy()
      })
    },
  }
}

export interface JoinOptions {
  /** Without a byte in either direction for this many milliseconds, both legs are reset. */
  readonly idleMs: number
  /** Bytes that came from `one`, and from `other`. */
  readonly onBytes: (fromOne: number, fromOther: number) => void
}

/**
 * Joins two legs, and resolves when both are closed. The end of one direction ends that direction of the other side
 * only; a reset of one side becomes a reset of the other.
 */
export function joinLegs(one: Leg, other: Leg, { idleMs, onBytes }: JoinOptions): Promise<void> {
  const reset = (): void => {
    one.reset()
    other.reset()
  }
  one.stream.on('data', (chunk: Buffer) => onBytes(chunk.length, 0))
  other.stream.on('data', (chunk: Buffer) => onBytes(0, chunk.length))
  one.stream.pipe(other.stream)
  other.stream.pipe(one.stream)
  // All bytes pass both sides: the timer of one is enough.
  one.stream.setTimeout(idleMs, reset)
  return Promise.all([closed(one, reset), closed(other, reset)]).then(() => undefined)
}

function closed({ stream }: Leg, reset: () => void): Promise<void> {
  return new Promise((resolve) => {
    const onClose = (): void => {
      if (!stream.readableEnded || !stream.writableFinished) reset()
      resolve()
    }
    stream.on('error', reset)
    if (stream.closed) onClose()
    else stream.once('close', onClose)
  })
}
