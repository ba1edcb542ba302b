// Connects to one of several endpoints of a Service.
import { connect, type Socket } from 'node:net'
import { keepAliveMs } from './peer-dialer.ts'
import type { Endpoint } from './service-endpoints.ts'

const connectMs = 2000

export interface Connected {
  readonly socket: Socket
  readonly endpoint: Endpoint
}

/** Connects to the first endpoint that takes the connection, in order; undefined if none does. */
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
    // This listener stays: later errors are handled by the user of the socket.
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
