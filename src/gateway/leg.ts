// One side of a connection that passes through the gateway.
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'

export interface Leg {
  readonly stream: Socket
  /** Ends it with a TCP reset, so that the other end does not take what it has got for everything. */
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
      // Later: promises and events of TLS run while it still reads from the TCP socket, and closing that then crashes Node 24.
      setImmediate(() => {
        if (!raw.destroyed) raw.resetAndDestroy()
        secure.destroy()
      })
    },
  }
}
