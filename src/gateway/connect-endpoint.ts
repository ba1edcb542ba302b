// Connects to one of several endpoints of a Service.
import { connect, type Socket } from 'node:net'
import { keepAliveMs } from './peer-dialer.ts'
import type { Endpoint } from './service-endpoints.ts'

const connectMs = 2000

export interface Connected {
  readonly socket: Socket
  readonly endpoint: Endpoint
}

/** Tries them in order. Undefined: none takes the connection. */
export async function connectEndpoint(endpoints: readonly Endpoint[]): Promise<Connected | undefined> {
  for (const endpoint of endpoints) {
    const socket = await connectOne(endpoint)
    if (socket !== undefined) return { socket, endpoint }
  }
  return undefined
}

function connectOne({ address, port }: Endpoint): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect({
      host: address,
      port,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: keepAliveMs,
      allowHalfOpen: true,
    })
    const timer = setTimeout(() => socket.destroy(), connectMs)
    // Stays: later errors are those of whoever has the socket.
    socket.on('error', () => undefined)
    socket.once('close', () => {
      clearTimeout(timer)
      resolve(undefined)
    })
    socket.once('connect', () => {
      clearTimeout(timer)
      resolve(socket)
    })
  })
}
